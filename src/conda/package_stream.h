// Unpacking packages in parallel, in memory, for one consumer that takes them in their order.
#pragma once

#include "conda/package_info.h"
#include "util/error.h"
#include "util/open_file.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace containerize::conda {

struct PlannedPath {
    const PathEntry* entry = nullptr;
    std::string target;
    bool wanted = true; ///< false: another package's file stands there
};

struct PackagePlan {
    OpenFile archive;
    std::string name;
    std::string prefix;
    std::unordered_map<std::string, PlannedPath> paths; ///< by their path in the package
};

/// Something to write, in the order of the package.
struct Piece {
    enum class Kind { directory, symlink, hardlink, file, more, end };
    Kind kind = Kind::end;
    std::string path;
    const PathEntry* entry = nullptr;
    mode_t mode = 0644; ///< with the type
    std::uint32_t mtime = 0;
    std::string target;  ///< of links
    std::string content; ///< of file and more
    bool last = false;   ///< nothing more of this file follows
    std::string sha256;  ///< with the last piece of a file that names the prefix
};

class PackageStreams {
public:
    /// `plan` is called from the threads, once for each package.
    PackageStreams(unsigned threads, std::uint64_t memory, std::size_t packages,
                   std::function<PackagePlan(std::size_t)> plan);
    PackageStreams(const PackageStreams&) = delete;
    PackageStreams& operator=(const PackageStreams&) = delete;
    ~PackageStreams();

    /// The next piece of package `index`; packages must be taken in their order, each to its end.
    Result<Piece> next(std::size_t index);

private:
    struct Queue {
        std::deque<Result<Piece>> pieces;
        std::uint64_t bytes = 0;
    };
    class Unpacking;

    void work();
    bool put(std::size_t index, Result<Piece> piece);

    std::function<PackagePlan(std::size_t)> plan_;
    std::uint64_t share_; ///< of memory, for each package in work
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Queue> queues_;
    std::size_t next_ = 0;    ///< package that no thread has begun
    std::size_t current_ = 0; ///< package that the consumer is at
    std::size_t ahead_;       ///< packages that may be begun before the consumer is at them
    bool stopping_ = false;
    std::vector<std::jthread> threads_;
};

} // namespace containerize::conda
