#include "conda/package_cache.h"

#include "conda/repodata_state.h"
#include "core/entries.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/read_write.h"
#include "core/resources.h"
#include "core/text.h"
#include "core/url.h"
#include "util/digest.h"
#include "util/file_lock.h"
#include "util/in_parallel.h"
#include "util/log.h"
#include "util/progress.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <iterator>
#include <limits>
#include <map>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace containerize::conda {

namespace {

/// Each running download holds descriptors for its lock and its connection.
constexpr std::size_t largest_batch = 256;
constexpr std::size_t of_anything_else = 128; ///< other open files

/// A wanted archive.
struct Item {
    const PackageRecord* record = nullptr;
    std::string name;
    fs::path file;                        // path in our cache
    OpenFile found = {};                  // set once it has been found and verified
    std::vector<std::string> copies = {}; // URLs of files that may match, but that others can modify
};

bool has_digest(const PackageRecord& record) {
    return !record.sha256.empty() || !record.md5.empty();
}

Status check_record(const PackageRecord& record, bool allow_unverified) {
    const auto& name = record.file_name;
    const bool safe = !name.empty() && name.front() != '.' && name.size() < 200 &&
                      std::ranges::none_of(name, [](unsigned char c) { return c == '/' || c < ' '; });
    const auto refuse = [&](std::string why, std::string hint) {
        return fail({.what = "cannot fetch this package",
                     .why = std::move(why),
                     .where = without_credentials(record.url),
                     .hint = std::move(hint)});
    };
    if (!safe) return refuse("its file name is invalid", {});
    if ((!record.sha256.empty() && !is_hex(record.sha256, 64)) ||
        (!record.md5.empty() && !is_hex(record.md5, 32)))
        return refuse("its checksum is invalid", {});
    if (has_digest(record) || allow_unverified) return {};
    return refuse("its channel has no checksum for it",
                  "Without a checksum, the download cannot be verified.");
}

constexpr std::size_t id_length = 16;

/// Names include the digest, since two channels may have different files of the same name.
std::string cache_name(const PackageRecord& record) {
    const auto id = !record.sha256.empty() ? record.sha256.substr(0, id_length)
                    : !record.md5.empty()  ? "md5-" + record.md5.substr(0, id_length)
                                           : "url-" + sha256(record.url).substr(0, id_length);
    return id + "-" + record.file_name;
}

std::string host_name() {
    char name[64] = {};
    if (gethostname(name, sizeof name - 1) != 0) return "host";
    std::string text = name;
    std::ranges::replace(text, '/', '_');
    return text;
}

/// Another user's file of that name is not ours to replace, so ours gets another one.
fs::path place_of(const fs::path& directory, const std::string& name) {
    struct stat info {};
    const bool of_another = lstat((directory / name).c_str(), &info) == 0 && info.st_uid != geteuid();
    return directory / (of_another ? std::to_string(geteuid()) + "-" + name : name);
}

/// The partial file. It is per user and per node, since locks may be node-local (Lustre's localflock).
fs::path part_of(const fs::path& file) {
    return file.parent_path() /
           ("." + file.filename().string() + "." + host_name() + "." + std::to_string(geteuid()) + ".part");
}

/// For partial files: others must not even be able to lock them.
constexpr mode_t part_mode = 0600;
/// For finished files, before the umask is applied.
constexpr mode_t archive_mode = 0644;

template<class Algorithm>
std::optional<std::string> digest_of(const Fd& file) {
    Algorithm digest;
    std::vector<char> buffer(std::size_t{1} << 20U);
    for (;;) {
        const auto got = read_all(file.get(), buffer.data(), buffer.size());
        if (got < 0 || interrupted()) return std::nullopt;
        if (got == 0) return digest.finish();
        digest.update(buffer.data(), static_cast<std::size_t>(got));
    }
}

/// Whether a file is the archive of a record.
enum class Match {
    none,
    archive, ///< yes, verified
    copy,    ///< perhaps, but others can modify it after verification
};

/// Sets `found` to the verified file: by the time it is read, the path may name another one.
Match match(const fs::path& path, const PackageRecord& record, OpenFile& found) {
    Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info {};
    if (!file || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return Match::none;
    if (record.size > 0 && static_cast<std::uint64_t>(info.st_size) != record.size) return Match::none;
    if (!is_ours_alone(info)) return has_digest(record) ? Match::copy : Match::none;
    const bool good = !record.sha256.empty() ? digest_of<Sha256>(file) == record.sha256
                                             : record.md5.empty() || digest_of<Md5>(file) == record.md5;
    if (!good) return Match::none;
    found = {.path = path, .file = std::make_shared<const Fd>(std::move(file))};
    return Match::archive;
}

/// The URL of a list is used unchanged if it has credentials.
std::vector<std::string> urls_of(const PackageRecord& record, const std::vector<Channel>& channels,
                                 const Config& config) {
    if (!record.download_url.empty()) return {record.download_url};
    return download_urls(record.url, channels, config);
}

/// Where it may exist already: in our cache, in a channel on disk, in conda's caches.
std::vector<fs::path> candidates(const Item& item, const std::vector<Channel>& channels,
                                 const Config& config) {
    const auto& record = *item.record;
    std::vector<fs::path> paths = {item.file};
    if (const auto of_another = item.file.parent_path() / item.name; of_another != item.file)
        paths.push_back(of_another);
    for (const auto& url : urls_of(record, channels, config))
        if (url.starts_with("file:")) paths.emplace_back(file_url_path(url));
    // conda's caches go by file name, which without a digest does not identify the package.
    if (!has_digest(record)) return paths;
    for (const auto& directory : config.pkgs_dirs) {
        paths.push_back(directory / record.file_name);
        if (const auto scheme = record.url.find("://"); scheme != std::string::npos)
            paths.push_back(directory / record.url.substr(0, scheme) / record.url.substr(scheme + 3));
    }
    return paths;
}

class PackageFetcher {
public:
    PackageFetcher(const std::vector<Channel>& channels, const Config& config, const PackageOptions& options)
        : channels_(channels), config_(config), options_(options),
          directory_(options.wheels ? wheels_in(options.cache) : packages_in(options.cache)) {}

    Result<std::vector<OpenFile>> run(const std::vector<PackageRecord>& records) {
        TRY(make_shared(directory_));
        TRY(allow_open_files(records.size() + largest_batch + of_anything_else));
        TRY(collect(records));
        TRY(look_for_all());
        TRY(fetch_missing());
        std::vector<OpenFile> archives;
        for (const auto& record : records)
            archives.push_back(found_.at(cache_name(record)));
        return archives;
    }

private:
    Status collect(const std::vector<PackageRecord>& records) {
        std::size_t unverified = 0;
        for (const auto& record : records) {
            TRY(check_record(record, options_.allow_unverified));
            if (!has_digest(record)) ++unverified;
            const auto name = cache_name(record);
            if (found_.try_emplace(name).second)
                items_.push_back({.record = &record, .name = name, .file = place_of(directory_, name)});
        }
        if (unverified > 0)
            log::info(fmt::format("Note: {} of {} packages have no checksum and cannot be verified",
                                  unverified, records.size()));
        return {};
    }

    Status look_for_all() {
        std::uint64_t bytes = 0;
        std::error_code ignored;
        for (const auto& item : items_)
            if (fs::exists(item.file, ignored)) bytes += item.record->size;
        // Show a stage only if it takes more than about a second.
        std::optional<Stage> stage;
        if (bytes > 500'000'000) stage.emplace("Verifying cached packages");
        std::atomic<std::uint64_t> done{0};
        TRY(in_parallel(default_jobs(available_resources()), items_.size(), [&](std::size_t at) -> Status {
            if (interrupted()) return fail_interrupted();
            look_for(items_[at]);
            done += items_[at].record->size;
            if (stage) stage->advance(std::min(done.load(), bytes), bytes);
            return {};
        }));
        if (interrupted()) return fail_interrupted();
        if (stage) stage->finish();
        for (auto& item : items_)
            if (item.found) ready(item);
        return {};
    }

    void look_for(Item& item) const {
        for (const auto& path : candidates(item, channels_, config_)) {
            const auto kind = match(path, *item.record, item.found);
            if (kind == Match::copy) item.copies.push_back(file_url(path.string()));
            if (kind == Match::archive) return;
        }
    }

    [[nodiscard]] bool offline() const { return options_.offline || config_.offline; }

    /// Where to get the item. Local copies are verified while they are read, like downloads.
    [[nodiscard]] std::vector<std::string> sources(const Item& item) const {
        auto urls = item.copies;
        for (auto& url : urls_of(*item.record, channels_, config_))
            urls.push_back(std::move(url));
        if (offline()) std::erase_if(urls, [](const auto& url) { return !url.starts_with("file:"); });
        return urls;
    }

    void ready(const Item& item) {
        if (item.found.path == item.file) mark_used(item.file);
        found_[item.name] = item.found;
    }

    Status fetch_missing() {
        std::vector<Item*> missing;
        for (auto& item : items_)
            if (!item.found) missing.push_back(&item);
        if (missing.empty()) return {};
        std::vector<Item*> unreachable;
        std::ranges::copy_if(missing, std::back_inserter(unreachable),
                             [this](const Item* item) { return sources(*item).empty(); });
        if (!unreachable.empty()) return refuse_offline(unreachable);
        // Largest first, so that no large one is left to download alone at the end.
        std::ranges::stable_sort(missing, std::greater(),
                                 [](const Item* item) { return item->record->size; });
        for (const Item* item : missing)
            total_ += item->record->size;
        const auto count = missing.size();
        Stage stage("Fetching packages");
        while (!missing.empty())
            TRY(fetch_batch(missing, stage));
        stage.finish(fmt::format("{}, {}", counted(count, "package"), human_bytes(fetched_)));
        return {};
    }

    static std::unexpected<Error> refuse_offline(const std::vector<Item*>& missing) {
        return fail({.what = missing.size() == 1
                                 ? "the cache does not have this package"
                                 : fmt::format("the cache does not have this package and {} more",
                                               missing.size() - 1),
                     .why = "--offline forbids using the network",
                     .where = without_credentials(missing.front()->record->url),
                     .hint = "Run once without --offline, with the same cache, on a machine that can reach "
                             "the channels."});
    }

    struct Part {
        Item* item;
        fs::path path;
        FileLock lock;
    };

    /// Downloads those items that no other process is fetching; if there are none, waits for one that is.
    Status fetch_batch(std::vector<Item*>& missing, Stage& stage) {
        std::vector<Part> parts;
        std::vector<Item*> busy;
        std::size_t taken = 0;
        for (; taken < missing.size() && parts.size() < largest_batch; ++taken) {
            Item* item = missing[taken];
            auto lock = TRY(try_lock(part_of(item->file), part_mode));
            if (lock.state == LockState::busy) {
                busy.push_back(item);
                continue;
            }
            claim(*item, std::move(lock), parts);
        }
        missing.erase(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(taken));
        missing.insert(missing.end(), busy.begin(), busy.end());
        if (!parts.empty()) return download(parts, stage);
        if (missing.empty() || busy.empty()) return {};
        stage.detail("waiting for another build to fetch " + busy.front()->record->file_name);
        auto lock = wait_for_lock(part_of(busy.front()->file), part_mode);
        stage.detail({});
        if (!lock) return fail(std::move(lock.error()));
        return {};
    }

    void claim(Item& item, FileLock lock, std::vector<Part>& parts) {
        auto path = part_of(item.file);
        if (match(item.file, *item.record, item.found) == Match::archive) {
            // Another process has finished it.
            unlink(path.c_str());
            total_ -= item.record->size;
            return ready(item);
        }
        if (lock.state == LockState::unsupported) {
            // Without locks, use a name of our own.
            unlink(path.c_str());
            path += "." + std::to_string(getpid());
        }
        parts.push_back({&item, std::move(path), std::move(lock)});
    }

    Status download(std::vector<Part>& parts, Stage& stage) {
        std::vector<http::Request> requests;
        for (const auto& part : parts) {
            const auto& record = *part.item->record;
            http::Request request;
            request.urls = sources(*part.item);
            request.file = part.path;
            request.size = record.size;
            request.sha256 = record.sha256;
            request.md5 = record.sha256.empty() ? record.md5 : "";
            requests.push_back(std::move(request));
        }
        const auto before = fetched_;
        const http::Observer observer{
            .progress =
                [&](const http::Progress& now) {
                    stage.advance(before + now.done, std::max(total_, before + now.total), now.rate);
                },
            .finished = [&](std::size_t index, const Result<http::Response>& result) -> Status {
                if (!result) return fail(result.error());
                return finish(parts[index], *result, stage);
            }};
        for (auto& result : http::fetch(requests, config_.http, observer))
            TRY(std::move(result));
        return {};
    }

    Status finish(Part& part, const http::Response& response, Stage& stage) {
        auto& item = *part.item;
        fchmod(response.file->get(), archive_mode & ~options_.umask_bits);
        // Another user may have created a file of that name since.
        item.file = place_of(directory_, item.name);
        if (rename(part.path.c_str(), item.file.c_str()) != 0)
            return fail_errno("cannot move the package into the cache", item.file.string());
        part.lock.file.reset();
        fetched_ += response.size;
        stage.detail(item.record->file_name);
        item.found = {.path = item.file, .file = response.file};
        ready(item);
        return {};
    }

    const std::vector<Channel>& channels_;
    const Config& config_;
    const PackageOptions& options_;
    fs::path directory_;
    std::vector<Item> items_;
    std::map<std::string, OpenFile> found_; // by name in the cache
    std::uint64_t total_ = 0, fetched_ = 0;
};

/// Whether cache_name() makes such a name.
bool is_cache_name(std::string_view name) {
    for (const std::string_view kind : {"md5-", "url-"})
        if (name.starts_with(kind)) {
            name.remove_prefix(kind.size());
            break;
        }
    return is_hex(name.substr(0, id_length), id_length) && name.substr(id_length).starts_with('-');
}

/// Whether this is an archive or a partial file of ours, by its name.
bool is_package_file(std::string_view name) {
    if (name.starts_with('.')) {
        const auto end = name.rfind(".part");
        if (end == std::string_view::npos) return false;
        name = name.substr(1, end - 1);
    } else if (!name.ends_with(".conda") && !name.ends_with(".tar.bz2") && !name.ends_with(".whl")) {
        return false;
    }
    if (is_cache_name(name)) return true;
    const auto user = take_until(name, '-'); // see place_of()
    return user && to_number<uid_t>(*user) && is_cache_name(name);
}

using IsOurs = bool (*)(std::string_view name);

/// In a shared cache, anybody may have put a link to elsewhere.
bool is_link_of_another(const fs::path& path) {
    struct stat info {};
    return lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode) && info.st_uid != geteuid() &&
           info.st_uid != 0;
}

/// Calls `visit` for each regular file in a directory of the cache that has a name of ours. Returns the
/// number of others: the directory may be one that the user keeps other files in.
template<class Visit>
Result<std::uint64_t> each_file(const fs::path& directory, IsOurs is_ours, const Visit& visit) {
    std::uint64_t foreign = 0;
    std::error_code problem;
    if (!fs::exists(directory, problem) || is_link_of_another(directory)) return foreign;
    for (const auto& entry : entries_in(directory, problem)) {
        struct stat info {};
        if (lstat(entry.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
        if (is_ours(entry.path().filename().string()))
            visit(entry.path(), info);
        else
            ++foreign;
    }
    if (problem) return fail_errno("cannot read the cache", directory.string(), problem.value());
    return foreign;
}

Result<CacheUse> use_of(const fs::path& directory, IsOurs is_ours) {
    CacheUse use;
    use.foreign = TRY(each_file(directory, is_ours, [&](const fs::path&, const struct stat& info) {
        ++use.files;
        use.bytes += static_cast<std::uint64_t>(info.st_size);
    }));
    return use;
}

Result<CacheUse> clean(const fs::path& directory, IsOurs is_ours, std::int64_t oldest) {
    CacheUse removed;
    Status outcome;
    removed.foreign = TRY(each_file(directory, is_ours, [&](const fs::path& file, const struct stat& info) {
        if (last_use(file) >= oldest) return;
        const auto name = file.filename().string();
        FileLock lock;
        if (name.ends_with(".part") || name.ends_with(".lock")) {
            auto tried = try_lock(file);
            if (!tried || tried->state == LockState::busy) return;
            lock = std::move(*tried);
        }
        if (unlink(file.c_str()) != 0) {
            const bool of_another = info.st_uid != geteuid(); // not ours to remove
            if (outcome && errno != ENOENT && !of_another)
                outcome = fail_errno("cannot remove the file", file.string());
            return;
        }
        ++removed.files;
        removed.bytes += static_cast<std::uint64_t>(info.st_size);
    }));
    TRY(std::move(outcome));
    return removed;
}

/// uv's own cache is a tree.
CacheUse use_of_uv(const fs::path& cache) {
    CacheUse use;
    if (!is_uv_safe(cache)) return use;
    std::error_code ignored;
    for (const auto& entry : entries_below(uv_in(cache), ignored)) {
        struct stat info {};
        if (lstat(entry.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
        ++use.files;
        use.bytes += static_cast<std::uint64_t>(info.st_size);
    }
    return use;
}

/// As a whole: each use of the program gives its directory the current time.
Result<CacheUse> clean_uv(const fs::path& cache, std::int64_t oldest) {
    struct stat info {};
    if (!is_uv_safe(cache) || lstat(uv_in(cache).c_str(), &info) != 0 || info.st_mtim.tv_sec >= oldest)
        return CacheUse{};
    const auto use = use_of_uv(cache);
    TRY(remove_tree(uv_in(cache)));
    return use;
}

} // namespace

Result<std::vector<OpenFile>> fetch_packages(const std::vector<PackageRecord>& records,
                                             const std::vector<Channel>& channels, const Config& config,
                                             const PackageOptions& options) {
    return PackageFetcher(channels, config, options).run(records);
}

Result<CacheInfo> cache_info(const CachePlaces& places) {
    auto packages = TRY(use_of(packages_in(places.shared), is_package_file));
    packages += TRY(use_of(wheels_in(places.shared), is_package_file));
    auto repodata = TRY(use_of(repodata_in(places.repodata), is_repodata_file));
    return CacheInfo{.packages = packages, .repodata = repodata, .uv = use_of_uv(places.uv)};
}

Result<CacheInfo> clean_cache(const CachePlaces& places, std::chrono::hours unused) {
    const std::int64_t oldest =
        unused.count() == 0
            ? std::numeric_limits<std::int64_t>::max()
            : std::time(nullptr) - std::chrono::duration_cast<std::chrono::seconds>(unused).count();
    auto packages = TRY(clean(packages_in(places.shared), is_package_file, oldest));
    packages += TRY(clean(wheels_in(places.shared), is_package_file, oldest));
    auto repodata = TRY(clean(repodata_in(places.repodata), is_repodata_file, oldest));
    auto uv = TRY(clean_uv(places.uv, oldest));
    return CacheInfo{.packages = packages, .repodata = repodata, .uv = uv};
}

std::vector<CachedFile> archives_in(const fs::path& cache) {
    std::vector<CachedFile> found;
    const auto add = [&](const fs::path& file, const struct stat& info) {
        // What is being downloaded starts with a dot.
        if (info.st_uid == geteuid() && !file.filename().string().starts_with('.'))
            found.push_back({.path = file,
                             .bytes = static_cast<std::uint64_t>(info.st_size),
                             .last_use = std::max<std::int64_t>(info.st_atim.tv_sec, info.st_mtim.tv_sec)});
    };
    for (const auto& directory : {packages_in(cache), wheels_in(cache)})
        [[maybe_unused]] const auto visited =
            each_file(directory, is_package_file, add); // what cannot be read stays
    return found;
}

} // namespace containerize::conda
