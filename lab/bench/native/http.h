// The little HTTP/1.1 that the mock replica and the load driver need: find the end of a head, then the end of a
// body (RFC 9112 sections 6 and 7). It trusts its peers; nothing here belongs before untrusted ones.
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define HEAD_MAX 16384

static inline uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static inline void die(const char *what) {
  perror(what);
  exit(1);
}

static inline void set_timer(int fd, uint64_t due_ns) {
  struct itimerspec spec = {.it_value = {.tv_sec = (time_t)(due_ns / 1000000000ull), .tv_nsec = (long)(due_ns % 1000000000ull)}};
  if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL) < 0) die("timerfd_settime");
}

enum body_state { BODY_LENGTH, BODY_EOF, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILER, BODY_DONE };

struct message {
  char head[HEAD_MAX];
  size_t head_length;  // bytes in head, which may go on behind the blank line while it is being looked for
  int in_body;
  enum body_state state;
  uint64_t left;       // of the body or of the chunk
  size_t line_length;  // of the trailer line
};

static inline void message_reset(struct message *m) {
  m->head_length = 0;
  m->in_body = 0;
}

// The value of a header, or NULL; `name` in lower case with its colon, as "content-length:".
static inline const char *header(const struct message *m, const char *name) {
  size_t name_length = strlen(name);
  const char *end = m->head + m->head_length;
  for (const char *line = memchr(m->head, '\n', m->head_length); line && line + 1 + name_length < end;
       line = memchr(line + 1, '\n', (size_t)(end - line - 1))) {
    if (strncasecmp(line + 1, name, name_length) != 0) continue;
    const char *value = line + 1 + name_length;
    while (*value == ' ') value++;
    return value;
  }
  return NULL;
}

// Takes bytes until the head is whole. Returns how many were of the head; sets in_body when it is.
static inline size_t message_take_head(struct message *m, const char *data, size_t length, int is_response) {
  size_t before = m->head_length;
  size_t copied = length < HEAD_MAX - 1 - before ? length : HEAD_MAX - 1 - before;
  memcpy(m->head + before, data, copied);
  size_t from = before > 3 ? before - 3 : 0;
  char *blank = memmem(m->head + from, before + copied - from, "\r\n\r\n", 4);
  if (!blank) {
    m->head_length += copied;
    if (m->head_length == HEAD_MAX - 1) fprintf(stderr, "a head is too large\n"), exit(1);
    return copied;
  }
  m->head_length = (size_t)(blank - m->head) + 4;
  m->head[m->head_length] = 0;
  m->in_body = 1;
  const char *content_length = header(m, "content-length:");
  if (header(m, "transfer-encoding:")) {
    m->state = CHUNK_SIZE;
    m->left = 0;
  } else if (content_length) {
    m->left = strtoull(content_length, NULL, 10);
    m->state = m->left ? BODY_LENGTH : BODY_DONE;
  } else {
    m->state = is_response ? BODY_EOF : BODY_DONE;
  }
  return m->head_length - before;
}

static inline int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 32;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Walks over the bytes of a body. Returns how many belonged to it; state is BODY_DONE at its end.
static inline size_t message_take_body(struct message *m, const char *data, size_t length) {
  size_t i = 0;
  while (i < length && m->state != BODY_DONE) {
    size_t rest = length - i;
    switch (m->state) {
      case BODY_EOF:
        return length;
      case BODY_LENGTH:
      case CHUNK_DATA: {
        size_t taken = rest < m->left ? rest : (size_t)m->left;
        i += taken;
        m->left -= taken;
        if (m->left == 0) m->state = m->state == BODY_LENGTH ? BODY_DONE : CHUNK_END;
        break;
      }
      case CHUNK_SIZE: {
        char c = data[i++];
        int digit = hex_value(c);
        if (digit >= 0) m->left = m->left * 16 + (uint64_t)digit;
        else if (c == '\n') m->state = m->left ? CHUNK_DATA : TRAILER, m->line_length = 0;
        break;
      }
      case CHUNK_END:
        if (data[i++] == '\n') m->state = CHUNK_SIZE, m->left = 0;
        break;
      case TRAILER:
        if (data[i] == '\n' && m->line_length == 0) m->state = BODY_DONE;
        else if (data[i] == '\n') m->line_length = 0;
        else if (data[i] != '\r') m->line_length++;
        i++;
        break;
      case BODY_DONE:
        break;
    }
  }
  return i;
}
