// The load before what is measured: one thread, one epoll loop.
//
//   load-driver MODE PORT --path PATH --body FILE [--connections N] [--warm-ms N] [--run-ms N] [--rate R]
//               [--header 'Name: value'] …
//
// closed  N connections, each with one request at a time, the next at once: the throughput, and the CPU it costs.
// open    R requests a second, at times of a Poisson process, on as many connections as that needs (at most N):
//         the latency, counted from when a request was due, so that a stall counts for all who had to wait.
// paced   N streams of the mock replica's @@paced kind: the delay of each event since the replica wrote it.
// idle    N connections that send one request each, then nothing until standard input ends.
//
// Prints "start" when the warm-up is over and one line of JSON when the measured time is: read the CPU at both.
// `idle` prints "start" when all connections are idle. Latencies and delays are in µs, resolved to 1 %.
#include "http.h"

#define READ_BYTES 1048576

enum mode { CLOSED, OPEN, PACED, IDLE };

struct connection {
  int fd;
  int connected;
  int busy;             // a request is out
  int answered;         // the head of its answer was a 200
  int streaming;        // paced: has had its first event
  int used;             // has had an answer before: an end before the next answer is a race, not an error
  size_t sent;          // bytes of the request written
  uint64_t due_ns;      // when the request was to be sent
  int stamp_digits;     // paced: digits seen behind an "@", -1 outside
  uint64_t stamp;
  struct message answer;
};

static enum mode mode;
static int epoll_fd, timer_fd, port;
static char *request;
static size_t request_length;
static int connection_limit = 16, connection_count, streaming_count, connecting_count;
static uint64_t warm_ns = 500000000ull, run_ns = 2000000000ull, start_ns, end_ns;
static double rate = 100;
static struct connection **idle_stack;
static int idle_count;
static char buffer[READ_BYTES];
static uint64_t requests, errors, events_seen, bytes_read;

// --- a histogram of ns: 128 steps in each power of two

#define STEPS 128
static uint64_t histogram[64 * STEPS], histogram_count, histogram_max;

static int bucket_of(uint64_t ns) {
  if (ns < STEPS) return (int)ns;
  int power = 63 - __builtin_clzll(ns);
  return (power - 6) * STEPS + (int)((ns >> (power - 7)) & (STEPS - 1));
}

static void count_ns(uint64_t ns) {
  histogram[bucket_of(ns)]++;
  histogram_count++;
  if (ns > histogram_max) histogram_max = ns;
}

static double percentile_us(double percentile) {
  uint64_t wanted = (uint64_t)(percentile / 100 * (double)histogram_count), seen = 0;
  for (int i = 0; i < 64 * STEPS; i++) {
    seen += histogram[i];
    if (seen <= wanted) continue;
    int power = i / STEPS + 6;
    return i < STEPS ? i / 1e3 : (double)((uint64_t)(STEPS + i % STEPS) << (power - 7)) / 1e3;
  }
  return (double)histogram_max / 1e3;
}

static int is_measured(uint64_t now) { return start_ns && now >= start_ns && now < end_ns; }

// --- the queue of requests that are due and have no connection yet (open)

static uint64_t *due_queue;
static size_t due_head, due_tail, due_capacity;

static void queue_due(uint64_t due) {
  if (due_tail == due_capacity) due_queue = realloc(due_queue, (due_capacity = due_capacity * 2 + 1024) * sizeof *due_queue);
  due_queue[due_tail++] = due;
}

// --- connections

static void watch(struct connection *c, int operation, uint32_t wanted) {
  struct epoll_event event = {.events = wanted, .data.ptr = c};
  if (epoll_ctl(epoll_fd, operation, c->fd, &event) < 0) die("epoll_ctl");
}

static void open_socket(struct connection *c) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int on = 1;
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (c->fd < 0) die("socket");
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  c->connected = c->used = 0;
  c->stamp_digits = -1;
  if (connect(c->fd, (struct sockaddr *)&address, sizeof address) < 0 && errno != EINPROGRESS) die("connect");
  watch(c, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT);
}

static void write_request(struct connection *c) {
  while (c->sent < request_length) {
    ssize_t written = write(c->fd, request + c->sent, request_length - c->sent);
    if (written < 0) {
      if (errno == EAGAIN) watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
      return;  // any other failure is seen by the reading side
    }
    c->sent += (size_t)written;
  }
}

static void begin_request(struct connection *c, uint64_t due) {
  c->busy = 1;
  c->answered = 0;
  c->sent = 0;
  c->due_ns = due;
  message_reset(&c->answer);
  if (c->connected) write_request(c);
}

static struct connection *add_connection(void) {
  struct connection *c = calloc(1, sizeof *c);
  connection_count++;
  connecting_count++;
  open_socket(c);
  return c;
}

static void reconnect(struct connection *c) {
  close(c->fd);
  c->sent = 0;
  open_socket(c);
}

static void start_measuring(uint64_t now) {
  start_ns = now + warm_ns;
  end_ns = start_ns + run_ns;
}

// Streams and idle connections are opened a few at a time: a backlog that overflows is not what is measured.
static void add_connections(void) {
  while (connection_count < connection_limit && connecting_count < 64) begin_request(add_connection(), now_ns());
}

static void end_request(struct connection *c) {
  uint64_t now = now_ns();
  c->busy = 0;
  c->used = 1;
  if (is_measured(now)) {
    if (c->answered) requests++, count_ns(now - c->due_ns);
    else errors++;
  }
  if (mode == CLOSED) {
    begin_request(c, now);
  } else if (mode == OPEN) {
    if (due_head < due_tail) begin_request(c, due_queue[due_head++]);
    else idle_stack[idle_count++] = c;
  } else if (mode == IDLE) {
    if (!c->answered) fprintf(stderr, "an idle connection was refused\n"), exit(1);
    connecting_count--;
    add_connections();
    if (++streaming_count == connection_limit) printf("start\n"), fflush(stdout);
  }
}

// An answer after which the server closes; the next request waits for the new connection.
static void end_and_reopen(struct connection *c) {
  close(c->fd);
  c->connected = 0;
  end_request(c);
  open_socket(c);
}

static void on_end(struct connection *c) {
  if (mode == IDLE && !c->busy) fprintf(stderr, "an idle connection was closed\n"), exit(1);
  if (mode == PACED) fprintf(stderr, "a stream ended\n"), exit(1);
  if (!c->busy) {  // open: the server closed an idle connection
    for (int i = 0; i < idle_count; i++)
      if (idle_stack[i] == c) idle_stack[i] = idle_stack[--idle_count];
    close(c->fd);
    free(c);
    connection_count--;
    return;
  }
  if (c->answer.in_body && c->answer.state == BODY_EOF) return end_and_reopen(c);
  if (!c->used || c->answer.head_length > 0) {
    if (is_measured(now_ns())) errors++;
    if (errors > 1000) fprintf(stderr, "too many errors\n"), exit(1);
  }
  message_reset(&c->answer);
  reconnect(c);
}

static void take_stamps(struct connection *c, const char *data, size_t length) {
  uint64_t now = now_ns();
  for (const char *p = data, *end = data + length; p < end; p++) {
    if (c->stamp_digits < 0) {
      p = memchr(p, '@', (size_t)(end - p));
      if (!p) return;
      c->stamp_digits = 0;
      c->stamp = 0;
    } else {
      c->stamp = c->stamp * 10 + (uint64_t)(*p - '0');
      if (++c->stamp_digits < 20) continue;
      c->stamp_digits = -1;
      if (is_measured(now)) events_seen++, count_ns(now - c->stamp);
      if (c->streaming) continue;
      c->streaming = 1;
      connecting_count--;
      add_connections();
      if (++streaming_count == connection_limit) start_measuring(now);
    }
  }
}

static void on_readable(struct connection *c) {
  ssize_t length = read(c->fd, buffer, sizeof buffer);
  if (length < 0 && errno == EAGAIN) return;
  if (length <= 0) return on_end(c);
  bytes_read += (uint64_t)length;
  if (!c->busy) return;
  const char *data = buffer;
  size_t left = (size_t)length;
  while (left > 0 && c->busy) {
    size_t taken;
    if (!c->answer.in_body) {
      taken = message_take_head(&c->answer, data, left, 1);
      if (c->answer.in_body) c->answered = memcmp(c->answer.head + 9, "200", 3) == 0;
      if (c->answer.in_body && !c->answered && mode == PACED) fprintf(stderr, "a stream was refused\n"), exit(1);
    } else {
      taken = message_take_body(&c->answer, data, left);
      if (mode == PACED) take_stamps(c, data, taken);
    }
    data += taken;
    left -= taken;
    if (!c->answer.in_body || c->answer.state != BODY_DONE) continue;
    if (mode == PACED) return on_end(c);
    const char *connection = header(&c->answer, "connection:");
    if (connection && strncasecmp(connection, "close", 5) == 0) return end_and_reopen(c);
    end_request(c);
    if (left > 0) return;  // nothing may follow an answer; a broken server shows as an error on the next
  }
}

static void on_writable(struct connection *c) {
  if (!c->connected) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) {
      errno = error;
      die("connect");
    }
    c->connected = 1;
  }
  watch(c, EPOLL_CTL_MOD, EPOLLIN);
  if (c->busy) write_request(c);
}

// --- the clock

static uint64_t random_state = 88172645463325252ull;

// The time to the next request of a Poisson process; the seed is fixed, so that all are given the same load.
static uint64_t next_gap_ns(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  double uniform = ((double)(random_state >> 11) + 0.5) / 9007199254740992.0;
  return (uint64_t)(-__builtin_log(uniform) / rate * 1e9);
}

static void send_due(uint64_t now, uint64_t *next_due) {
  while (*next_due <= now) {
    if (idle_count > 0) begin_request(idle_stack[--idle_count], *next_due);
    else if (connection_count < connection_limit) begin_request(add_connection(), *next_due);
    else queue_due(*next_due);
    *next_due += next_gap_ns();
  }
}

static void print_result(void) {
  printf("{\"requests\":%lu,\"errors\":%lu,\"events\":%lu,\"bytes\":%lu,\"seconds\":%.3f,\"p50Us\":%.1f,\"p99Us\":%.1f,"
         "\"maxUs\":%.1f}\n",
         requests, errors, events_seen, bytes_read, (double)run_ns / 1e9, percentile_us(50), percentile_us(99),
         (double)histogram_max / 1e3);
  fflush(stdout);
  exit(0);
}

static void run(void) {
  uint64_t now = now_ns(), next_due = now, deadline = now + 60000000000ull;
  int has_started = 0;
  if (mode == CLOSED || mode == OPEN) start_measuring(now);
  if (mode == CLOSED)
    for (int i = 0; i < connection_limit; i++) begin_request(add_connection(), now);
  if (mode == PACED || mode == IDLE) add_connections();
  struct epoll_event events[256];
  for (;;) {
    now = now_ns();
    if (start_ns && !has_started && now >= start_ns) has_started = 1, printf("start\n"), fflush(stdout);
    if (start_ns && now >= end_ns) print_result();
    if (mode == PACED && !start_ns && now > deadline) fprintf(stderr, "the streams did not start\n"), exit(1);
    if (mode == OPEN) send_due(now, &next_due);
    uint64_t wake = !start_ns ? now + 100000000ull : !has_started ? start_ns : end_ns;
    set_timer(timer_fd, mode == OPEN && next_due < wake ? next_due : wake);
    int count = epoll_wait(epoll_fd, events, 256, -1);
    for (int i = 0; i < count; i++) {
      struct connection *c = events[i].data.ptr;
      uint64_t expirations;
      if ((void *)c == &timer_fd) {
        if (read(timer_fd, &expirations, sizeof expirations) < 0) continue;
      } else if ((void *)c == &epoll_fd) {
        if (read(0, buffer, sizeof buffer) <= 0) exit(0);
      } else {
        if (events[i].events & EPOLLOUT) on_writable(c);
        else if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) on_readable(c);
      }
    }
  }
}

static char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file) die(path);
  fseek(file, 0, SEEK_END);
  *length = (size_t)ftell(file);
  rewind(file);
  char *bytes = malloc(*length);
  if (fread(bytes, 1, *length, file) != *length) die(path);
  fclose(file);
  return bytes;
}

int main(int argc, char **argv) {
  static const char *names[] = {"closed", "open", "paced", "idle"};
  const char *path = "/", *body_file = NULL;
  char headers[4096] = "";
  if (argc < 3) return fprintf(stderr, "usage: load-driver closed|open|paced|idle PORT …\n"), 2;
  while (mode <= IDLE && strcmp(argv[1], names[mode]) != 0) mode++;
  if (mode > IDLE) return fprintf(stderr, "no such mode\n"), 2;
  port = atoi(argv[2]);
  for (int i = 3; i + 1 < argc; i += 2) {
    const char *option = argv[i], *value = argv[i + 1];
    if (!strcmp(option, "--path")) path = value;
    else if (!strcmp(option, "--body")) body_file = value;
    else if (!strcmp(option, "--connections")) connection_limit = atoi(value);
    else if (!strcmp(option, "--warm-ms")) warm_ns = strtoull(value, NULL, 10) * 1000000;
    else if (!strcmp(option, "--run-ms")) run_ns = strtoull(value, NULL, 10) * 1000000;
    else if (!strcmp(option, "--rate")) rate = atof(value);
    else if (!strcmp(option, "--header")) strncat(headers, value, 1024), strcat(headers, "\r\n");
    else return fprintf(stderr, "no such option: %s\n", option), 2;
  }
  if (!body_file) return fprintf(stderr, "--body is missing\n"), 2;
  size_t body_length;
  char *body = read_file(body_file, &body_length);
  request = malloc(body_length + 8192);
  int head_length = snprintf(request, 8192,
                             "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: spangate-bench\r\nAccept: */*\r\n"
                             "Content-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n",
                             path, port, headers, body_length);
  memcpy(request + head_length, body, body_length);
  request_length = (size_t)head_length + body_length;
  free(body);
  signal(SIGPIPE, SIG_IGN);
  idle_stack = malloc((size_t)connection_limit * sizeof *idle_stack);
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &timer_fd};
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &event);
  event.data.ptr = &epoll_fd;  // stands for standard input
  if (mode == IDLE) epoll_ctl(epoll_fd, EPOLL_CTL_ADD, 0, &event);
  run();
}
