// train_imagenet --plan as its users start it: the table, the page, a command line that runs, refusals.
#include <algorithm>

#include "tests/support/program.h"

namespace skein {
namespace {

using testing_programs::Ended;
using testing_programs::expect_has;

const std::string kProbed =
    "timeout 100 $TRAIN --model mlp --data synthetic:4x4x1,classes=2,train=512,test=16 --threads 1 ";

// One, or two if one worker alone is faster.
std::vector<std::string> commands_in(const std::string& out) {
  std::vector<std::string> commands;
  std::istringstream lines(out);
  for (std::string line, before; std::getline(lines, line); before = line)
    if (before.starts_with("to start ")) commands.push_back(line);
  EXPECT_FALSE(commands.empty()) << out;
  return commands;
}

TEST(Plan, ListsAlgorithmsAndCommandsThatStartThem) {
  testing_programs::Workplace place;
  const Ended e =
      place.run(kProbed + "--batch-size 4 --workers 2 --plan --html plan.html --output \"o'brien\" " +
                "--algorithm local-sgd --tau 7 --wire bf16");
  ASSERT_EQ(e.status, 0) << e.err;
  for (const char* part : {"all workers are on one host", " images/s  waiting", "allreduce --wire bf16",
                           "osgp --topology exponential", "local-sgd --tau 7 --wire bf16"})
    expect_has(e.out, part);
  for (const std::string& command : commands_in(e.out)) {
    EXPECT_EQ(command.find("--plan"), std::string::npos) << command;
    const Ended started =
        place.run("rm -rf \"o'brien\"; timeout 60 " + command + " --steps 3 --no-tensorboard");
    EXPECT_EQ(started.status, 0) << command << started.err;
    expect_has(started.out, "predicted: ");
    expect_has(place.read("o'brien/summary.json"), "\"predicted\": {");
  }
  const Ended resumed = place.run("timeout 60 $TRAIN --resume \"o'brien\" --steps 4");
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(place.read("o'brien/summary.json").find("\"predicted\": {"), std::string::npos);
  const std::string page = place.read("plan.html");
  expect_has(page, "<svg");
  expect_has(page, "one worker alone");
}

// A ghost is cut as its model is, whose first layer here has a weight for each pixel.
TEST(Plan, KnowsWhichWayImagesAreLonger) {
  for (const char* image : {"100x24x1", "24x100x1"}) {
    testing_programs::Workplace place;
    const Ended e =
        place.run(std::string("timeout 100 $TRAIN --model mlp --threads 1 --batch-size 4 ") +
                  "--workers 2 --plan --data synthetic:" + image + ",classes=2,train=512,test=16");
    ASSERT_EQ(e.status, 0) << e.err;
    expect_has(e.out, " allreduce\n");
  }
}

TEST(Plan, IsPrintedEvenIfItsPageCannotBeWritten) {
  testing_programs::Workplace place;
  const Ended e = place.run("mkdir here; (until grep -q probing .out; do sleep 0.1; done; rmdir here) & " +
                            kProbed + "--batch-size 4 --workers 2 --plan --html here/plan.html");
  EXPECT_NE(e.status, 0);
  EXPECT_FALSE(commands_in(e.out).empty());
  expect_has(e.err, "cannot create this file");
}

TEST(Plan, RefusesWhatItCannotPlan) {
  testing_programs::Workplace place;
  const std::pair<std::string, std::string> refused[] = {
      {"--plan", "--plan is about several workers"},
      {"--html a.html", "--html goes with --plan"},
      {"--plan --workers 2 --html missing/plan.html", "missing/plan.html: this file cannot be made: No such"},
      {"--plan --workers 2 --html .", ".: is a directory; name a file in it"},
      {"--plan --workers 2 --resume x", "--resume"},
      {"--plan --workers 2 --split dirichlet:0.3", "--split does not go with --plan"},
      {"--plan --workers 2 --servers dedicated --algorithm gem",
       "--servers dedicated does not go with --plan"},
      {"--plan --workers 2 --batch-size 4,8", "--batch-size: --plan needs one number"},
      {"--config all.toml --plan --workers 2 --batch-size 4,8", "--batch-size: --plan needs one number"},
  };
  EXPECT_EQ(place.run(kProbed + "--print >all.toml").status, 0);  // as a run leaves one, with all defaults
  for (const auto& [flags, message] : refused) {
    const Ended e = place.run(kProbed + flags);
    EXPECT_NE(e.status, 0) << flags;
    expect_has(e.err, message);
    EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << e.err;
    EXPECT_EQ(e.out, "");
  }
}

}  // namespace
}  // namespace skein
