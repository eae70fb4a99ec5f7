// Communication between processes of one host: all-reduce, pairwise average, messages; compared with OpenMPI,
// the memory's bandwidth and UCX.
//
//   comm_bench [--ranks P] [--mb M] [--way shared|tcp|ucx] [--rounds R] [--peers DIR]
//   comm_bench --rank R --meet ADDRESS:PORT --key FILE [--seal auto|on|off] [--ranks P] [--mb M]
//
// The second form is one rank alone, for bench/sealed: all-reduce by TCP, and the processor time that it
// takes. With --peers, DIR holds allreduce_mpi, shm_floor (bench/peers, built as their first lines say); ours
// and theirs run in turn, R times, and the median of the ratios is reported, because other work on the
// machine affects both.
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "comm/average/in_place.h"
#include "comm/communicator/communicator.h"
#include "comm/join/rendezvous.h"

using namespace skein;
using namespace skein::comm;

namespace {

struct Plan {
  int ranks = 2, rounds = 3;
  double mb = 100;
  std::string way = "shared", peers;
  Rank rank = -1;  // of one that is alone in its process
  std::string meet, key, seal = "auto";
};

double seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}
double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Seconds that the slowest rank takes for f: median and least of `times` runs.
struct Times {
  double median = 0, least = 0;
};
template <class F>
Times slowest(Communicator& c, int times, F f) {
  std::vector<double> all;
  for (int i = -2; i < times; ++i) {  // two to warm up
    c.barrier();
    const auto began = Clock::now();
    f();
    const double t = seconds(began);
    const auto every = c.gather(Tensor::of<float>({1}, {float(t)}), 0);
    double worst = 0;
    for (const Tensor& e : every) worst = std::max(worst, double(*e.data<float>()));
    if (i >= 0) all.push_back(worst);
  }
  return {median(all), *std::min_element(all.begin(), all.end())};
}

void say(const Communicator& c, const char* what, Times t) {
  if (c.rank() == 0) std::printf("%s %.6f %.6f\n", what, t.least * 1e3, t.median * 1e3);
}

// One way, from rank 0 to rank 1, `count` messages of n floats: seconds a message as the receiver sees it.
Times one_way(Communicator& c, int64_t n, int count, int64_t& step) {
  const Tensor x = Tensor::zeros({n});
  return slowest(c, 5, [&] {
    for (int i = 0; i < count; ++i) {
      if (c.rank() == 0) c.push(1, 1, step + i, 1, x);
      if (c.rank() == 1) c.take(0, 1, step + i);
    }
    if (c.rank() == 1) c.push(0, 2, step, 1, Tensor::zeros({1}));
    if (c.rank() == 0) c.take(1, 2, step);
    step += count;
  });
}

void work(Communicator& c, const Plan& p) {
  const int64_t n = int64_t(p.mb * 1e6 / 4);
  const int times = p.mb > 10 ? 7 : 200;
  Tensor x({n}, kF32, c.allocator());
  fill(x, 1.f);
  int64_t step = 0;
  say(c, "allreduce", slowest(c, times, [&] { c.all_reduce(x).wait(); }));
  fill(x, 1.f);
  if (c.size() % 2 == 0 && share_memory(c, c.rank() ^ 1))
    say(c, "average", slowest(c, times, [&] { average_in_place(c, c.rank() ^ 1, x, 1, step++); }));
  if (c.size() != 2) return;
  say(c, "latency8", [&] {
    const Tensor two = Tensor::zeros({2});
    Times t = slowest(c, 5, [&] {
      for (int i = 0; i < 1000; ++i, ++step) {
        if (c.rank() == 0)
          c.push(1, 3, step, 1, two), c.take(1, 3, step);
        else
          c.take(0, 3, step), c.push(0, 3, step, 1, two);
      }
    });
    return Times{t.median / 2000, t.least / 2000};
  }());
  for (const auto& [name, bytes, count] :
       {std::tuple("oneway1M", int64_t(1) << 20, 200), std::tuple("oneway64M", int64_t(64) << 20, 4)}) {
    const Times t = one_way(c, bytes / 4, count, step);
    say(c, name, {t.median / count, t.least / count});
  }
}

void run_rank(const Plan& p, Rank rank, int port, const Secret& key) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(rank % int(sysconf(_SC_NPROCESSORS_ONLN)), &cores);
  sched_setaffinity(0, sizeof cores, &cores);
  RendezvousOptions r;
  r.rank = rank;
  r.size = p.ranks;
  r.port = port;
  r.key = key;
  Rendezvous meeting(std::move(r));
  TransportOptions o;
  o.way = parse_way(p.way);
  o.key = key;
  const auto transport = connect(meeting, o);
  Communicator c(*transport);
  if (rank == 0) std::printf("lanes %s\n", transport->describe().c_str());
  work(c, p);
  c.barrier();
}

double processor_seconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return double(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * double(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

// One rank, whose peers are in other network namespaces, or on other hosts.
void run_apart(const Plan& p) {
  std::ifstream file(p.key, std::ios::binary);
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  const Secret key(words);
  const size_t colon = p.meet.rfind(':');
  if (key.size() != kJobKeyBytes || colon == p.meet.npos)
    throw Error(text("--key names a file of ", kJobKeyBytes, " bytes, and --meet is ADDRESS:PORT of rank 0"));
  Rendezvous meeting({.rank = p.rank,
                      .size = p.ranks,
                      .host = p.meet.substr(0, colon),
                      .port = std::stoi(p.meet.substr(colon + 1)),
                      .key = key});
  const auto transport = connect(meeting, {.way = Way::kTcp, .sealing = parse_sealing(p.seal), .key = key});
  Communicator c(*transport);
  if (p.rank == 0) std::printf("lanes %s\n", transport->describe().c_str());
  Tensor x({int64_t(p.mb * 1e6 / 4)}, kF32, c.allocator());
  fill(x, 1.f);
  c.all_reduce(x).wait();
  double busy = 0;
  say(c, "allreduce", slowest(c, 3, [&] {
        const double before = processor_seconds();
        c.all_reduce(x).wait();
        busy += processor_seconds() - before;
      }));
  if (p.rank == 0) std::printf("processor %.6f\n", busy / 5 * 1e3);  // slowest() adds two
  if (c.size() == 2) {
    constexpr int kCount = 20;
    int64_t step = 0;
    const Times t = one_way(c, 250'000, kCount, step);
    say(c, "push1MB", {t.median / kCount, t.least / kCount});
  }
  c.barrier();
}

// Returns what a command prints.
std::string output_of(const std::string& command) {
  std::string all;
  FILE* f = popen((command + " 2>&1").c_str(), "r");
  if (!f) throw Error("cannot run " + command);
  char line[4096];
  while (fgets(line, sizeof line, f)) all += line;
  pclose(f);
  return all;
}
double number_after(const std::string& text, const std::string& word) {
  const size_t at = text.find(word);
  return at == std::string::npos ? 0 : std::atof(text.c_str() + at + word.size());
}

// Starts the ranks by executing ourselves; name -> {least, median} in ms.
std::map<std::string, std::pair<double, double>> ours(const Plan& p, std::string& lanes) {
  const std::string command = text("OMP_NUM_THREADS=1 /proc/", getpid(), "/exe --launch --ranks ", p.ranks,
                                   " --mb ", p.mb, " --way ", p.way);
  std::map<std::string, std::pair<double, double>> all;
  std::istringstream s(output_of(command));
  for (std::string line; std::getline(s, line);) {
    std::istringstream words(line);
    std::string name;
    double least = 0, middle = 0;
    if (line.rfind("lanes ", 0) == 0)
      lanes = line.substr(6);
    else if (words >> name >> least >> middle)
      all[name] = {least, middle};
    else if (!line.empty() && line.rfind("rank ", 0) != 0)
      std::printf("%s\n", line.c_str());
  }
  return all;
}

int launch(const Plan& p) {
  int port = 0;
  Fd listener = listen_at(port, true);
  const Secret key = Secret::random(kJobKeyBytes);
  listener = Fd();  // rank 0 opens it again; a benchmark can afford to lose that race
  std::vector<pid_t> children;
  for (Rank r = 0; r < p.ranks; ++r)
    if (const pid_t child = fork(); child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      try {
        run_rank(p, r, port, key);
        fflush(stdout);
        _exit(0);
      } catch (const std::exception& e) {
        std::fprintf(stderr, "rank %d: %s\n", r, e.what());
        _exit(1);
      }
    } else {
      children.push_back(child);
    }
  int bad = 0;
  for (pid_t c : children) {
    int status = 0;
    waitpid(c, &status, 0);
    bad += status != 0;
  }
  return bad;
}

void compare(const Plan& p) {
  std::map<std::string, std::vector<double>> least;
  std::string lanes;
  for (int round = 0; round < p.rounds; ++round) {
    for (const auto& [name, t] : ours(p, lanes)) least[name].push_back(t.first);
    if (p.peers.empty()) continue;
    const std::string mpi = output_of(
        text("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --bind-to core"
             ":overload-allowed -n ",
             p.ranks, " ", p.peers, "/allreduce_mpi ", p.mb));
    const std::string floor = output_of(text(p.peers, "/shm_floor ", p.ranks, " ", p.mb));
    least["mpi allreduce"].push_back(number_after(mpi, ": best "));
    least["mpi allreduce in place"].push_back(number_after(mpi, "in-place best "));
    least["mpi sendrecv"].push_back(number_after(mpi, "pairwise sendrecv best "));
    least["floor allreduce"].push_back(number_after(floor, "allreduce-in-place "));
    least["floor average"].push_back(number_after(floor, "pairwise split-average "));
    if (p.way == "ucx" && p.ranks == 2)
      for (const auto& [name, bytes] :
           {std::pair("perftest oneway1M", "1048576"), std::pair("perftest oneway64M", "67108864")}) {
        const std::string server = text("timeout 60 ucx_perftest -t ucp_am_bw -e -s ", bytes, " -n 200 -c 0");
        const std::string text_of =
            output_of(text("UCX_POSIX_ERROR_HANDLING=y UCX_SYSV_ERROR_HANDLING=y sh -c '", server,
                           " -p 13999 >/dev/null 2>&1 & sleep 1; timeout 50 ucx_perftest localhost -p 13999 "
                           "-t ucp_am_bw -e -s ",
                           bytes, " -n 200 -c 1 -f; wait'"));
        // The last line: count, latency (3 columns), bandwidth (average, overall), rate (2).
        std::istringstream s(text_of);
        double rate = 0;
        for (std::string line; std::getline(s, line);) {
          std::istringstream words(line);
          std::vector<double> row;
          for (double v; words >> v;) row.push_back(v);
          if (row.size() >= 7) rate = row[row.size() - 3];
        }
        least[name].push_back(rate > 0 ? std::atof(bytes) / (rate * 1048576) * 1e3 : 0);
      }
  }
  std::printf("%d ranks, %g MB, %s\n  lanes: %s\n", p.ranks, p.mb, p.way.c_str(), lanes.c_str());
  for (const auto& [name, v] : least)
    std::printf("  %-26s %9.4f ms  (least of each run, median of %zu runs)\n", name.c_str(), median(v),
                v.size());
  const auto ratio = [&](const char* above, const char* below) {
    if (!least.count(above) || !least.count(below)) return;
    std::vector<double> r;
    for (size_t i = 0; i < std::min(least[above].size(), least[below].size()); ++i)
      r.push_back(least[above][i] / least[below][i]);
    std::printf("  %s / %s: %.2f\n", above, below, median(r));
  };
  ratio("mpi allreduce", "allreduce");
  ratio("mpi allreduce in place", "allreduce");
  ratio("allreduce", "floor allreduce");
  ratio("average", "floor average");
  ratio("perftest oneway1M", "oneway1M");
  ratio("perftest oneway64M", "oneway64M");
}

}  // namespace

int main(int argc, char** argv) {
  Plan p;
  bool launching = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--launch")
      launching = true;
    else if (word == "--ranks")
      p.ranks = std::stoi(value), ++i;
    else if (word == "--mb")
      p.mb = std::stod(value), ++i;
    else if (word == "--way")
      p.way = value, ++i;
    else if (word == "--rounds")
      p.rounds = std::stoi(value), ++i;
    else if (word == "--peers")
      p.peers = value, ++i;
    else if (word == "--rank")
      p.rank = std::stoi(value), ++i;
    else if (word == "--meet")
      p.meet = value, ++i;
    else if (word == "--key")
      p.key = value, ++i;
    else if (word == "--seal")
      p.seal = value, ++i;
    else
      return std::fprintf(stderr,
                          "comm_bench: unknown option %s; the first lines of bench/comm_bench.cc list them\n",
                          word.c_str()),
             2;
  }
  if (launching) return launch(p);
  if (p.rank < 0) return compare(p), 0;
  try {
    return run_apart(p), 0;
  } catch (const std::exception& e) { return std::fprintf(stderr, "rank %d: %s\n", p.rank, e.what()), 1; }
}
