// Small files that a run leaves for later ones.
#include <sys/stat.h>

#include "apps/launch/crew/superior.h"
#include "apps/launch/elastic/card.h"
#include "apps/launch/elastic/register.h"
#include "apps/launch/meeting.h"
#include "apps/launch/membership_note.h"
#include "apps/report/compare.h"
#include "apps/report/metrics.h"
#include "apps/report/report.h"
#include "engine/words/choice_file.h"
#include "optim/order_log.h"
#include "tests/fuzz/fuzz.h"

namespace skein::fuzz {
namespace {

size_t scripts_in(const std::string& page) {
  size_t n = 0;
  for (size_t at = 0; (at = page.find("script", at)) != std::string::npos; ++at)
    n += at > 0 && (page[at - 1] == '<' || page[at - 1] == '/');
  return n;
}

}  // namespace

void recording(Input in) {
  const std::string path = put("log.server", in.rest());
  may_refuse([&] {
    optim::Options o;
    o.set("replay", path.substr(0, path.rfind('.')));
    optim::OrderLog log(o, "server");
    for (int i = 0; i < 50 && !log.ended(); ++i) log.happened(log.next());
  });
}

void choices(Input in) {
  const std::string path = put("choices", in.rest());
  may_refuse([&] {
    const ChoiceFile c(path);
    (void)c.find("k");
  });
}

void note(Input in) {
  const std::string path = put("note", in.rest());
  may_refuse([&] {
    apps::MeetingNote n;
    if (apps::read_note(path, n))
      require(n.port >= 0 && n.port < 65536 && n.key.size() == comm::kJobKeyBytes, "an impossible note");
  });
}

// A line for each worker.
void first_view(Input in) {
  std::vector<std::string> said;
  while (in.left() > 0) said.push_back(in.line());
  if (said.empty()) return;
  may_refuse([&] {
    const comm::View v = apps::first_view(said);
    require(v.members.size() == said.size(), "a worker is not in the view");
    for (size_t r = 0; r < said.size(); ++r) {
      require(v.rank(v.members[r].id) == int(r), "two workers of one number");
      require(apps::introduction(v.members[r].id, v.members[r].card).size() <= said[r].size(),
              "a worker said less than is known of it");
    }
    (void)apps::Register().decides(v);
    require(comm::View::read(v.write()) == v, "a view is written as another one");
  });
}

void claim(Input in) {
  const auto c = apps::Claim::read(in.rest());
  if (!c) return;
  const auto again = apps::Claim::read(c->write());
  require(again && again->epoch == c->epoch && again->view == c->view, "a claim reads back as another one");
  const auto view = comm::View::read(c->view);
  require(!view || view->write() == c->view, "a view is written as another one");
}

// The first byte chooses: the note in a run's directory, or an address.
void membership(Input in) {
  const bool note = in.byte() & 1;
  const std::string bytes = in.rest();
  if (!note && bytes.find('/') != std::string::npos) return;
  may_refuse([&] {
    std::string doors = bytes;
    const auto found = note ? apps::parse_membership(doors, "note").doors : apps::parse_join(bytes).doors;
    require(!found.empty(), "a job without members");
    for (const apps::DoorAddress& d : found)
      require(d.port > 0 && d.port < 65536 && !d.hosts.empty() && !d.hosts[0].empty(), "an impossible door");
  });
}

// metrics.jsonl, summary.json, timeline.json and evaluation.json, with a byte of 1 between two. What they say
// must not become markup of a page. The first byte says whether it is drawn.
void metrics(Input in) {
  static const size_t scripts = scripts_in(apps::render_report({}));
  const bool drawn = in.byte() & 1;
  std::string files[4], all = in.rest();
  for (std::string& f : files) {
    f = all.substr(0, all.find('\1'));
    all.erase(0, f.size() + 1);
  }
  may_refuse([&] {
    apps::RunFiles run = apps::parse_run(files[0], files[1], files[2], files[3]);
    run.directory = "a";
    if (drawn)
      return require(scripts_in(apps::render_report(run)) == scripts, "a script of the run's in its page");
    apps::RunFiles other = run;
    other.directory = "b";
    if (!run.runs.empty()) (void)apps::compare({run, other});
  });
}

// metrics.jsonl of a run that is resumed at the step of the first byte.
void resumed_metrics(Input in) {
  const int64_t step = in.byte();
  put("metrics.jsonl", in.rest());
  may_refuse([&] { const apps::MetricsLog log(scratch(), step); });
}

}  // namespace skein::fuzz
