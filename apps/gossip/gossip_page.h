// gossip_avg --report: the error over the rounds, measured and theoretical, as one self-contained page.
#pragma once
#include <string>

#include "apps/gossip/gossip_result.h"

namespace skein::apps {

// An HTML page with its style and its picture (SVG) inside; no script, no network.
std::string gossip_page(const GossipFlags&, const GossipStory&);

}  // namespace skein::apps
