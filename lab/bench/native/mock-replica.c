// A replica and a collector that cost less than whatever is measured before them: one thread, one epoll loop,
// answers made at the start.
//
//   mock-replica FIRST_PORT PORT_COUNT [EMBEDDINGS_BYTES]
//
// Listens on PORT_COUNT ports of 127.0.0.1, prints "ready", serves until it is killed. What it answers to a POST
// stands in the prompt, so that it survives gateways that rewrite the body:
//   @@burst               a stream of 16 events and [DONE], in one write
//   @@paced:INTERVAL_US   a stream without end, an event each interval: its content is "@" and 20 digits, the time
//                         of CLOCK_MONOTONIC in ns at which it was written
//   otherwise             a completion of 40 tokens; on …/embeddings, vectors of EMBEDDINGS_BYTES
// When the body asks for include_usage, a burst has the usage event before [DONE], as engines do. A POST to
// …/v1/traces is a collector's: any body, answered with {}. A GET: a list of the one model.
#include "http.h"

#define SAMPLE_MAX 8192
#define READ_BYTES 262144

static const char HEAD_JSON[] = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n";
static const char HEAD_STREAM[] =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
static const char EVENT[] =
    "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\","
    "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"},\"finish_reason\":%s}]}\n\n";
#define USAGE                                                                         \
  "\"usage\":{\"prompt_tokens\":500,\"completion_tokens\":40,\"total_tokens\":540,"   \
  "\"prompt_tokens_details\":{\"cached_tokens\":256}}"

struct text {
  char *bytes;
  size_t length;
};

struct connection {
  int fd;
  struct message request;
  char sample[SAMPLE_MAX + 1];  // the beginning of the body
  size_t sample_length;
  struct text pending;      // what the socket would not take yet: static text, or `held`
  char held[512];
  uint64_t interval_ns, due_ns;
  int paced;                // is in the heap
  int closed;
};

static struct text plain, burst, burst_usage, embeddings, models, empty;
static char paced_frame[512];
static size_t paced_length, paced_stamp;
static int epoll_fd, timer_fd;
static char buffer[READ_BYTES];

// --- a binary heap of streams by the time of their next event

static struct connection **heap;
static size_t heap_size, heap_capacity;

static void heap_sift_down(size_t i) {
  for (;;) {
    size_t least = i, left = 2 * i + 1, right = left + 1;
    if (left < heap_size && heap[left]->due_ns < heap[least]->due_ns) least = left;
    if (right < heap_size && heap[right]->due_ns < heap[least]->due_ns) least = right;
    if (least == i) return;
    struct connection *swapped = heap[i];
    heap[i] = heap[least];
    heap[least] = swapped;
    i = least;
  }
}

static void heap_push(struct connection *c) {
  if (heap_size == heap_capacity) {
    heap_capacity = heap_capacity ? heap_capacity * 2 : 1024;
    heap = realloc(heap, heap_capacity * sizeof *heap);
  }
  size_t i = heap_size++;
  heap[i] = c;
  while (i > 0 && heap[(i - 1) / 2]->due_ns > heap[i]->due_ns) {
    struct connection *swapped = heap[i];
    heap[i] = heap[(i - 1) / 2];
    heap[(i - 1) / 2] = swapped;
    i = (i - 1) / 2;
  }
}

static void heap_pop(void) {
  heap[0] = heap[--heap_size];
  heap_sift_down(0);
}

// --- answers

static struct text to_text(const char *bytes, size_t length) {
  struct text made = {malloc(length + 1), length};
  memcpy(made.bytes, bytes, length);
  made.bytes[length] = 0;
  return made;
}

static struct text json_answer(const char *body, size_t length) {
  char head[256];
  size_t head_length = (size_t)snprintf(head, sizeof head, HEAD_JSON, length);
  struct text made = {malloc(head_length + length), head_length + length};
  memcpy(made.bytes, head, head_length);
  memcpy(made.bytes + head_length, body, length);
  return made;
}

static size_t put_chunk(char *to, const char *data) {
  return (size_t)sprintf(to, "%zx\r\n%s\r\n", strlen(data), data);
}

static struct text burst_answer(int with_usage) {
  char made[16384], event[1024], content[16];
  size_t length = (size_t)sprintf(made, "%s", HEAD_STREAM);
  for (int i = 0; i < 16; i++) {
    snprintf(content, sizeof content, "tok%d ", i);
    snprintf(event, sizeof event, EVENT, i == 15 ? "" : content, i == 15 ? "\"stop\"" : "null");
    length += put_chunk(made + length, event);
  }
  if (with_usage)
    length += put_chunk(made + length,
                        "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,"
                        "\"model\":\"m\",\"choices\":[]," USAGE "}\n\n");
  length += put_chunk(made + length, "data: [DONE]\n\n");
  length += (size_t)sprintf(made + length, "0\r\n\r\n");
  return to_text(made, length);
}

static struct text embeddings_answer(size_t wanted_bytes) {
  char *body = malloc(wanted_bytes + 16384), vector[8193];
  memset(vector, 'A', sizeof vector - 1);
  vector[sizeof vector - 1] = 0;
  size_t length = (size_t)sprintf(body, "{\"object\":\"list\",\"model\":\"m\",\"data\":[");
  for (int i = 0; length < wanted_bytes; i++)
    length += (size_t)sprintf(body + length, "%s{\"object\":\"embedding\",\"index\":%d,\"embedding\":\"%s\"}",
                              i ? "," : "", i, vector);
  length += (size_t)sprintf(body + length, "],\"usage\":{\"prompt_tokens\":500,\"total_tokens\":500}}");
  struct text made = json_answer(body, length);
  free(body);
  return made;
}

static void make_answers(size_t embeddings_bytes) {
  char content[512] = "", body[1024], event[512];
  for (int i = 0; i < 40; i++) strcat(content, "hello ");
  int length = snprintf(body, sizeof body,
                        "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1700000000,\"model\":\"m\","
                        "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"%s\"},"
                        "\"finish_reason\":\"stop\"}]," USAGE "}",
                        content);
  plain = json_answer(body, (size_t)length);
  burst = burst_answer(0);
  burst_usage = burst_answer(1);
  embeddings = embeddings_answer(embeddings_bytes);
  static const char list[] = "{\"object\":\"list\",\"data\":[{\"id\":\"m\",\"object\":\"model\",\"created\":1700000000,"
                             "\"owned_by\":\"vllm\",\"max_model_len\":131072}]}";
  models = json_answer(list, sizeof list - 1);
  empty = json_answer("{}", 2);
  snprintf(event, sizeof event, EVENT, "@00000000000000000000", "null");
  paced_length = put_chunk(paced_frame, event);
  paced_stamp = (size_t)(strchr(paced_frame, '@') - paced_frame) + 1;
}

// --- connections

static void watch(struct connection *c, int operation, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = c};
  if (epoll_ctl(epoll_fd, operation, c->fd, &event) < 0) die("epoll_ctl");
}

// A stream in the heap is freed when its turn comes.
static void close_connection(struct connection *c) {
  close(c->fd);
  c->closed = 1;
  if (!c->paced) free(c);
}

static void flush(struct connection *c) {
  while (c->pending.length > 0) {
    ssize_t written = write(c->fd, c->pending.bytes, c->pending.length);
    if (written < 0) {
      if (errno == EAGAIN) break;
      c->pending.length = 0;  // the read side sees the end
      return;
    }
    c->pending.bytes += written;
    c->pending.length -= (size_t)written;
  }
}

static void send_text(struct connection *c, struct text text) {
  c->pending = text;
  flush(c);
  if (c->pending.length > 0) watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
}

static void start_paced(struct connection *c, const char *marker) {
  static uint64_t count;
  send_text(c, (struct text){(char *)HEAD_STREAM, sizeof HEAD_STREAM - 1});
  c->interval_ns = strtoull(marker, NULL, 10) * 1000;
  // The golden ratio spreads the phases evenly, however many streams there are.
  double phase = 0.6180339887 * (double)count++;
  phase -= (double)(uint64_t)phase;
  c->due_ns = now_ns() + (uint64_t)((double)c->interval_ns * phase);
  c->paced = 1;
  heap_push(c);
  set_timer(timer_fd, heap[0]->due_ns);
}

static int ends_with(const char *head, const char *path_end, const char *suffix) {
  size_t length = strlen(suffix);
  return (size_t)(path_end - head) >= length && memcmp(path_end - length, suffix, length) == 0;
}

static void answer(struct connection *c) {
  const char *head = c->request.head, *path = strchr(head, ' ') + 1, *path_end = path + strcspn(path, " ?");
  if (head[0] == 'G') return send_text(c, ends_with(head, path_end, "/models") ? models : empty);
  if (ends_with(head, path_end, "/v1/traces")) return send_text(c, empty);
  if (ends_with(head, path_end, "/embeddings")) return send_text(c, embeddings);
  const char *marker = memmem(c->sample, c->sample_length, "@@", 2);
  if (!marker) return send_text(c, plain);
  c->sample[c->sample_length] = 0;
  if (strncmp(marker, "@@paced:", 8) == 0) return start_paced(c, marker + 8);
  int with_usage = memmem(c->sample, c->sample_length, "include_usage", 13) != NULL;
  send_text(c, strncmp(marker, "@@burst", 7) != 0 ? plain : with_usage ? burst_usage : burst);
}

static void feed(struct connection *c, const char *data, size_t length) {
  while (length > 0) {
    size_t taken;
    if (!c->request.in_body) {
      taken = message_take_head(&c->request, data, length, 0);
    } else {
      taken = message_take_body(&c->request, data, length);
      size_t room = SAMPLE_MAX - c->sample_length;
      size_t copied = taken < room ? taken : room;
      memcpy(c->sample + c->sample_length, data, copied);
      c->sample_length += copied;
    }
    data += taken;
    length -= taken;
    if (!c->request.in_body || c->request.state != BODY_DONE) continue;
    answer(c);
    message_reset(&c->request);
    c->sample_length = 0;
  }
}

static void on_readable(struct connection *c) {
  ssize_t length = read(c->fd, buffer, sizeof buffer);
  if (length > 0) feed(c, buffer, (size_t)length);
  else if (length == 0 || errno != EAGAIN) close_connection(c);
}

static void on_writable(struct connection *c) {
  flush(c);
  if (c->pending.length == 0) watch(c, EPOLL_CTL_MOD, EPOLLIN);
}

static void write_digits(char *to, uint64_t value) {
  for (int i = 19; i >= 0; i--, value /= 10) to[i] = (char)('0' + value % 10);
}

static void send_due_events(void) {
  uint64_t now = now_ns();
  while (heap_size > 0 && heap[0]->due_ns <= now) {
    struct connection *c = heap[0];
    if (c->closed) {
      heap_pop();
      free(c);
      continue;
    }
    if (c->pending.length == 0) {  // a client that does not read misses events rather than getting old ones
      write_digits(paced_frame + paced_stamp, now_ns());
      ssize_t written = write(c->fd, paced_frame, paced_length);
      if (written < 0) written = errno == EAGAIN ? 0 : (ssize_t)paced_length;
      if ((size_t)written < paced_length) {
        memcpy(c->held, paced_frame, paced_length);
        c->pending = (struct text){c->held + written, paced_length - (size_t)written};
        watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
      }
    }
    c->due_ns += c->interval_ns;
    if (c->due_ns < now) c->due_ns = now + c->interval_ns;
    heap_sift_down(0);
  }
  if (heap_size > 0) set_timer(timer_fd, heap[0]->due_ns);
}

static void accept_all(int listener) {
  int fd, on = 1;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct connection *c = malloc(sizeof *c);
    memset(c, 0, offsetof(struct connection, request));
    c->fd = fd;
    message_reset(&c->request);
    c->sample_length = c->pending.length = 0;
    c->paced = c->closed = 0;
    watch(c, EPOLL_CTL_ADD, EPOLLIN);
  }
}

static int listen_on(int port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 4096) < 0) die("listen");
  return fd;
}

int main(int argc, char **argv) {
  if (argc < 3) return fprintf(stderr, "usage: mock-replica FIRST_PORT PORT_COUNT [EMBEDDINGS_BYTES]\n"), 2;
  int first_port = atoi(argv[1]), port_count = atoi(argv[2]);
  signal(SIGPIPE, SIG_IGN);
  make_answers(argc > 3 ? strtoull(argv[3], NULL, 10) : 1000);
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  // What is not a connection is told by its address: timer, then one listener a port.
  static int listeners[1024];
  if (port_count > 1024) return 2;
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &timer_fd};
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &event);
  for (int i = 0; i < port_count; i++) {
    listeners[i] = listen_on(first_port + i);
    event.data.ptr = &listeners[i];
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listeners[i], &event);
  }
  printf("ready\n");
  fflush(stdout);
  struct epoll_event events[256];
  for (;;) {
    int count = epoll_wait(epoll_fd, events, 256, -1);
    for (int i = 0; i < count; i++) {
      void *source = events[i].data.ptr;
      if (source == &timer_fd) {
        uint64_t expirations;
        if (read(timer_fd, &expirations, sizeof expirations) > 0) send_due_events();
      } else if ((int *)source >= listeners && (int *)source < listeners + port_count) {
        accept_all(*(int *)source);
      } else {
        struct connection *c = source;
        if (events[i].events & EPOLLOUT) on_writable(c);
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) on_readable(c);
      }
    }
  }
}
