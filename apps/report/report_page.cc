// Puts title, style, scripts and data into the frame.
#include "apps/report/report_page.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>

#include "engine/base.h"
#include "engine/words/json.h"

namespace skein::apps {
namespace {

std::string replaced(std::string s, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = s.find(what, at)) != std::string::npos; at += by.size())
    s.replace(at, what.size(), by);
  return s;
}

struct PageFile {
  const char *name, *text;
};
constexpr PageFile kPageFiles[] = {
#include "page_files.inc"
};

}  // namespace

const char* report_file(const char* name) {
  const auto* const found = std::find_if(std::begin(kPageFiles), std::end(kPageFiles),
                                         [&](const PageFile& f) { return std::strcmp(f.name, name) == 0; });
  CHECK(found != std::end(kPageFiles), name, " is no file of apps/report");
  return found->text;
}

std::string escape_html(std::string s) {
  for (const auto& [c, by] : {std::pair{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}}) s = replaced(s, c, by);
  return s;
}

std::string render_page(const std::string& title, const std::string& subtitle,
                        const std::vector<const char*>& scripts, const Json& data) {
  // Only '<' could end the script element. JSON has it only inside strings, where the escape means the same.
  const std::string json = replaced(json_text(data), "<", "\\u003c");
  const auto value_of = [&](const std::string& mark) -> std::string {
    if (mark == "TITLE") return escape_html(title);
    if (mark == "SUBTITLE") return escape_html(subtitle);
    if (mark == "STYLE") return report_file("style.css");
    if (mark == "DATA") return json;
    std::string all;
    for (const char* name : scripts) all += report_file(name);
    return all;
  };
  // One pass, so that inserted text is not searched for marks.
  std::string page;
  const std::string frame = report_file("page.html");
  size_t from = 0;
  for (size_t at = 0; (at = frame.find("{{", from)) != std::string::npos;) {
    const size_t end = frame.find("}}", at);
    page += frame.substr(from, at - from) + value_of(frame.substr(at + 2, end - at - 2));
    from = end + 2;
  }
  return page + frame.substr(from);
}

std::string plain_page(const std::string& title, const std::string& style, const std::string& header,
                       const std::string& body, const char* program) {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
         title + "</title>\n<style>\n" + report_file("style.css") + style +
         "\n</style>\n</head>\n<body>\n<main>\n<header><h1>" + title + "</h1>" + header + "</header>\n" +
         body + text("<footer>", program, " " SKEIN_VERSION "</footer>\n</main>\n</body>\n</html>\n");
}

std::string tile(const std::string& number, const std::string& what) {
  return "<div class=\"card tile\"><b>" + number + "</b><span>" + what + "</span></div>\n";
}

}  // namespace skein::apps
