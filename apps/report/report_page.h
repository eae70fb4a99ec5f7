// The frame, style and scripts of the pages, which are the files of apps/report.
#pragma once
#include <string>
#include <vector>

#include "apps/base/json.h"

namespace skein::apps {

// The text of a file of apps/report, which the build embeds in the program.
const char* report_file(const char* name);

// A self-contained page, which opens from a disk without a network. `scripts` are files that run in order and
// find `data` as `page`.
std::string render_page(const std::string& title, const std::string& subtitle,
                        const std::vector<const char*>& scripts, const Json& data);

// A page without scripts. `style` is added to that of all pages; title, header and body are HTML.
std::string plain_page(const std::string& title, const std::string& style, const std::string& header,
                       const std::string& body, const char* program);
std::string tile(const std::string& number, const std::string& what);  // for a section of class "tiles"

std::string escape_html(std::string text);

}  // namespace skein::apps
