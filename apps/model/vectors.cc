// Reads and writes .npy and .safetensors files as flat vectors.
#include "apps/model/vectors.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "apps/base/printable.h"
#include "apps/model/safetensors.h"
#include "comm/communicator/numbers.h"
#include "engine/vectors/vec.h"
#include "engine/words/file.h"
#include "engine/words/number.h"

namespace skein::apps {
namespace {

constexpr char kNpyMagic[] = "\x93NUMPY";

// "[3, 4]".
std::string list_of(const std::vector<int64_t>& numbers) {
  std::string s;
  for (const int64_t n : numbers) s += (s.empty() ? "" : ", ") + std::to_string(n);
  return '[' + s + ']';
}

std::string ending_error(const std::string& path) {
  return path + ": the name must end in .npy or .safetensors";
}

// The text after 'key': in the header's dictionary.
std::string field(const std::string& path, const std::string& header, const std::string& key) {
  const size_t at = header.find("'" + key + "':");
  const size_t from = at == std::string::npos ? at : header.find_first_not_of(' ', at + key.size() + 3);
  if (from == std::string::npos) throw BadFile(path + ": its header has no " + key);
  return header.substr(from);
}

// Bytes per number; 0 if this type is not averaged.
size_t npy_width(const std::string& type) {
  return type == "<f2" ? 2 : type == "<f4" ? 4 : type == "<f8" ? 8 : 0;
}

// Converts numbers between a file's type and ours.
template <class To, class From>
void convert(char* to, const char* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    From x;
    std::memcpy(&x, from + i * int64_t(sizeof x), sizeof x);
    const To y = To(float(x));
    std::memcpy(to + i * int64_t(sizeof y), &y, sizeof y);
  }
}

Vectors::Item npy_item(const std::string& path, const std::string& header) {
  Vectors::Item item;
  const std::string type = field(path, header, "descr"), shape = field(path, header, "shape");
  item.type = type.substr(std::min<size_t>(1, type.size()), type.find('\'', 1) - 1);
  if (!npy_width(item.type))
    throw BadFile(path + ": holds numbers of type " + item.type +
                  "; only <f2, <f4 and <f8 (float16, float32, float64) can be averaged");
  item.fortran = field(path, header, "fortran_order").starts_with("True");
  const size_t end = shape.find(')');
  if (shape.empty() || shape[0] != '(' || end == std::string::npos)
    throw BadFile(path + ": its header has no shape");
  int64_t volume = int64_t(npy_width(item.type));
  std::istringstream numbers(shape.substr(1, end - 1));
  for (std::string word; std::getline(numbers, word, ',');) {
    std::erase(word, ' ');
    if (word.empty()) continue;  // behind the last comma
    const int64_t n = number_in<int64_t>(word).value_or(-1);
    if (n < 0 || __builtin_mul_overflow(volume, n, &volume))
      throw BadFile(
          path + ": its header has an impossible shape: " + shape.substr(0, std::min<size_t>(end + 1, 60)));
    item.shape.push_back(n);
  }
  return item;
}

Vectors read_npy(const std::string& path) {
  const std::string bytes = read_file(path);
  const size_t prefix = bytes.size() > 6 && bytes[6] > 1 ? 12 : 10;
  if (bytes.size() < prefix || bytes.compare(0, 6, kNpyMagic, 6) != 0)
    throw BadFile(path + ": is not a .npy file");
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, prefix == 12 ? 4 : 2);
  if (bytes.size() < prefix + length) throw BadFile(path + ": is truncated within its header");
  Vectors v;
  v.npy = true;
  v.items = {npy_item(path, bytes.substr(prefix, length))};
  const int64_t n = v.items[0].size();
  const size_t width = npy_width(v.items[0].type), expected = size_t(n) * width;
  if (bytes.size() - prefix - length != expected)
    throw BadFile(text(path, ": has ", bytes.size() - prefix - length, " bytes of numbers, ", v.layout(),
                       " needs ", expected));
  v.flat = Tensor({n}, width == 8 ? kI64 : kF32);
  const char* from = bytes.data() + prefix + length;
  char* const to = static_cast<char*>(v.flat.raw());
  if (width == 2)
    convert<float, f16>(to, from, n);
  else
    std::memcpy(to, from, expected);
  return v;
}

void write_npy(const std::string& path, const Vectors& v) {
  const Vectors::Item& item = v.items[0];
  std::string shape;
  for (int64_t n : item.shape) shape += std::to_string(n) + (item.shape.size() == 1 ? "," : ", ");
  if (item.shape.size() > 1) shape.resize(shape.size() - 2);
  std::string header = "{'descr': '" + item.type +
                       "', 'fortran_order': " + (item.fortran ? "True" : "False") + ", 'shape': (" + shape +
                       "), }";
  // Makes the numbers begin at a multiple of 64.
  header += std::string(63 - (10 + header.size()) % 64, ' ') + "\n";
  const uint16_t length = uint16_t(header.size());
  std::string bytes = std::string(kNpyMagic, 6) + std::string("\1\0", 2);
  bytes.append(reinterpret_cast<const char*>(&length), 2);
  bytes += header;
  const int64_t n = v.flat.size();
  const size_t at = bytes.size(), width = npy_width(item.type);
  bytes.resize(at + size_t(n) * width);
  char* const to = bytes.data() + at;
  const char* const from = static_cast<const char*>(v.flat.raw());
  if (width == 2)
    convert<f16, float>(to, from, n);
  else
    std::memcpy(to, from, size_t(n) * width);
  write_file(path, bytes);
}

const char* name_in_file(DType t) { return t == kF32 ? "F32" : t == kBF16 ? "BF16" : "F16"; }

Vectors read_tensors(const std::string& path) {
  TensorFile file = read_safetensors(path);
  if (file.tensors.empty()) throw BadFile(path + ": holds no tensors");
  std::sort(file.tensors.begin(), file.tensors.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  Vectors v;
  int64_t n = 0;
  v.metadata = file.metadata;
  const auto whole = std::stable_partition(file.tensors.begin(), file.tensors.end(),
                                           [](const auto& named) { return is_float(named.second.dtype()); });
  v.kept.assign(whole, file.tensors.end());
  file.tensors.erase(whole, file.tensors.end());
  if (file.tensors.empty())
    throw BadFile(path + ": holds no tensors of type F32, BF16 or F16, which are averaged");
  for (const auto& [name, t] : file.tensors) {
    v.items.push_back({name, name_in_file(t.dtype()), {t.shape().begin(), t.shape().end()}});
    n += t.size();
  }
  v.flat = Tensor({n});
  int64_t at = 0;
  for (const auto& [name, t] : file.tensors) {
    copy(v.flat.view({t.size()}, at), t.view({t.size()}));
    at += t.size();
  }
  return v;
}

void write_tensors(const std::string& path, const Vectors& v, const std::string& provenance) {
  TensorFile file;
  file.metadata = v.metadata;
  if (!provenance.empty()) file.metadata["gossip_avg"] = provenance;
  int64_t at = 0;
  for (const Vectors::Item& item : v.items) {
    Tensor t(Shape(item.shape), item.type == "BF16" ? kBF16 : item.type == "F16" ? kF16 : kF32);
    copy(t.view({t.size()}), v.flat.view({t.size()}, at));
    file.tensors.emplace_back(item.name, t);
    at += t.size();
  }
  file.tensors.insert(file.tensors.end(), v.kept.begin(), v.kept.end());
  write_safetensors(path, file);
}

}  // namespace

int64_t Vectors::Item::size() const {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

std::string Vectors::layout() const {
  std::string s;
  const auto add = [&](const std::string& name, const std::string& type, const std::vector<int64_t>& shape) {
    s += (s.empty() ? "" : "; ") + name + (name.empty() ? "" : " ") + type + ' ' + list_of(shape);
  };
  for (const Item& item : items) add(item.name, item.type + (item.fortran ? " fortran" : ""), item.shape);
  for (const auto& [name, t] : kept) add(name, text(t.dtype()), {t.shape().begin(), t.shape().end()});
  return s;
}

// Element `at` as "[1, 2]" in an array, or as "tensor 'w' [1, 2]".
std::string Vectors::place_of(int64_t at) const {
  size_t i = 0;
  while (at >= items[i].size()) at -= items[i++].size();
  const Item& item = items[i];
  std::vector<int64_t> index(item.shape.size());
  for (size_t k = 0; k < index.size(); ++k) {
    const size_t axis = item.fortran ? k : index.size() - 1 - k;  // the fastest axis first
    index[axis] = at % item.shape[axis];
    at /= item.shape[axis];
  }
  return (item.name.empty() ? "" : "tensor '" + item.name + "' ") + list_of(index);
}

void check_numbers(const std::string& path, const Vectors& v, int workers) {
  const bool wide = comm::holds_doubles(v.flat);
  const double most = (wide ? DBL_MAX : double(FLT_MAX)) / workers;
  comm::visit_numbers(v.flat, [&](const auto* x) {
    for (int64_t i = 0; i < v.flat.size(); ++i) {
      const double d = double(x[i]);
      if (!std::isfinite(d))
        throw BadFile(text(path, ": ", v.place_of(i), " is ", d, "; only finite numbers have a mean"));
      if (std::abs(d) > most)
        throw BadFile(text(path, ": ", v.place_of(i), " is ", d, ", too large for the sum of ", workers,
                           " such numbers in ", wide ? "float64" : "float32"));
    }
  });
}

std::string vectors_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (!is_directory(path)) return path;
  const fs::path model = fs::path(path) / "model.safetensors";
  if (fs::exists(model, none)) return model.string();
  if (fs::exists(fs::path(path) / "manifest.json", none))
    throw BadFile(
        path +
        ": is a checkpoint, the state of a training; only models can be averaged: give the run's directory");
  throw BadFile(
      path +
      ": is a directory without model.safetensors, which a run writes when it ends; let it end with "
      "train_imagenet --resume " +
      shell_word(path));
}

Vectors read_vectors(const std::string& path) {
  if (path.ends_with(".npy")) return read_npy(path);
  if (path.ends_with(".safetensors")) return read_tensors(path);
  std::error_code none;
  if (!std::filesystem::exists(path, none)) throw BadFile(path + ": no such file or directory");
  throw BadOption(ending_error(path) + ", or be the directory of a run");
}

void check_ending(const std::string& path, bool result_is_npy) {
  const bool npy = path.ends_with(".npy");
  if (!npy && !path.ends_with(".safetensors")) throw BadOption(ending_error(path));
  if (npy != result_is_npy)
    throw BadOption(path + (npy ? ": tensors that have names are written as .safetensors"
                                : ": one array without a name is written as .npy"));
}

void write_vectors(const std::string& path, const Vectors& v, const std::string& provenance) {
  check_ending(path, v.npy);
  if (!v.npy) return write_tensors(path, v, provenance);
  write_npy(path, v);
  if (!provenance.empty()) write_file(path + ".json", provenance + '\n');
}

Vectors plain_vector(const Tensor& flat, const std::string& path) {
  const bool npy = !path.ends_with(".safetensors");
  return {npy, {{npy ? "" : "x", npy ? "<f4" : "F32", {flat.size()}}}, flat};
}

}  // namespace skein::apps
