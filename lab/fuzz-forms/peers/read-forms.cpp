// Reads the forms of a file with cpp-httplib, as its server does. Writes a line of JSON for each: its parts, or null.
#include "httplib.cpp"

#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>

struct Part {
  std::string name, filename, content;
};

static std::string data;
static size_t offset = 0;

static uint32_t read_number() {
  uint32_t value = 0;
  for (int i = 0; i < 4; i++) value = value << 8 | static_cast<unsigned char>(data.at(offset++));
  return value;
}

static std::string read_sized() {
  const auto length = read_number();
  offset += length;
  return data.substr(offset - length, length);
}

static std::string to_hex(const std::string &bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

// What Server::read_content_core and Server::read_content do with a body.
static bool read_form(const std::string &content_type, const std::vector<std::string> &pieces, std::vector<Part> &parts) {
  httplib::Request request;
  request.headers.emplace("Content-Type", content_type);
  std::string boundary;
  if (!request.is_multipart_form_data()) return false;
  if (!httplib::detail::parse_multipart_boundary(content_type, boundary)) return false;
  httplib::detail::FormDataParser parser;
  parser.set_boundary(std::move(boundary));
  for (const auto &piece : pieces) {
    const auto is_read = parser.parse(
        piece.data(), piece.size(),
        [&](const httplib::FormData &head) {
          parts.push_back({head.name, head.filename, ""});
          return true;
        },
        [&](const char *bytes, size_t length) {
          parts.back().content.append(bytes, length);
          return true;
        });
    if (!is_read) return false;
  }
  return parser.is_valid();
}

int main(int, char **arguments) {
  std::ifstream in(arguments[1], std::ios::binary);
  data.assign(std::istreambuf_iterator<char>(in), {});
  std::ofstream out(arguments[2]);
  while (offset < data.size()) {
    const auto content_type = read_sized();
    std::vector<std::string> pieces(read_number());
    for (auto &piece : pieces) piece = read_sized();
    std::vector<Part> parts;
    if (!read_form(content_type, pieces, parts)) {
      out << "null\n";
      continue;
    }
    out << '[';
    for (size_t i = 0; i < parts.size(); i++) {
      const auto &[name, filename, content] = parts[i];
      out << (i == 0 ? "[\"" : ",[\"") << to_hex(name) << "\",";
      // Without the name of a file, the server takes a part for text.
      if (filename.empty()) out << "null";
      else out << '"' << to_hex(filename) << '"';
      out << ",\"" << to_hex(content) << "\"]";
    }
    out << "]\n";
  }
}
