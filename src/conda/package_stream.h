// Unpacks packages in memory, in parallel, for one consumer that takes them in order.
#pragma once

#include "conda/package_info.h"
#include "core/error.h"
#include "core/open_file.h"

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
    bool wanted = true; ///< false: another package owns the target
};

struct PackagePlan {
    OpenFile archive;
    std::string name;
    std::string prefix;
    std::unordered_map<std::string, PlannedPath> paths = {}; ///< by the path in the package
};

/// Something to write, in the order of the package.
struct Piece {
    enum class Kind { directory, symlink, hardlink, file, more, end };
    Kind kind = Kind::end;
    std::string path = {};
    const PathEntry* entry = nullptr;
    mode_t mode = 0644; ///< including the file type
    std::uint32_t mtime = 0;
    std::string target = {};  ///< for links
    std::string content = {}; ///< for file and more
    bool last = false;        ///< the last piece of a file
    std::string sha256 = {};  ///< set in the last piece of a file whose prefix was replaced
};

class PackageStreams {
public:
    /// `plan` is called once per package, from any of the threads.
    PackageStreams(unsigned threads, std::uint64_t memory, std::size_t packages,
                   std::function<PackagePlan(std::size_t)> plan);
    PackageStreams(const PackageStreams&) = delete;
    PackageStreams& operator=(const PackageStreams&) = delete;
    ~PackageStreams();

    /// Returns the next piece of package `index`. Packages must be taken in order, each to its end.
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
    std::uint64_t share_; ///< limit of buffered bytes per package
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Queue> queues_;
    std::size_t next_ = 0;    ///< the first package that no thread has started
    std::size_t current_ = 0; ///< the package that the consumer reads
    std::size_t ahead_;       ///< how many packages beyond that may be started
    bool stopping_ = false;
    std::vector<std::jthread> threads_;
};

} // namespace containerize::conda
