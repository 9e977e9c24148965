#include "conda/repodata.h"

#include "conda/cache_directory.h"
#include "conda/repodata_state.h"
#include "conda/temporary.h"
#include "core/entries.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/url.h"
#include "util/file_lock.h"
#include "util/log.h"
#include "util/progress.h"

#include <algorithm>
#include <ctime>
#include <future>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

namespace containerize::conda {

namespace {

constexpr std::int64_t day = 86400;

/// Removes temporary files of killed builds, and shards that no build used for long.
void remove_abandoned(const fs::path& directory) {
    std::error_code ignored;
    for (const auto& name : names_in(directory)) {
        const auto kept = name.starts_with(".tmp-") ? day : name.ends_with(shard_ending) ? 30 * day : 0;
        if (kept > 0 && last_use(directory / name) + kept < std::time(nullptr))
            fs::remove(directory / name, ignored);
    }
}

/// The work for one subdir of one channel.
struct Task {
    Task(const Channel& the_channel, std::string the_subdir, const fs::path& directory)
        : channel(the_channel), subdir(std::move(the_subdir)), url(channel.url + "/" + subdir),
          slot(directory, list_address(channel, subdir)) {}

    const Channel& channel;
    std::string subdir, url;
    RepodataSlot slot;
    std::optional<RepodataState> state; // of the cached content, or of a missing subdir
    OpenFile json;
    bool settled = false; // json and state are final
    FileLock lock;

    [[nodiscard]] bool is_local() const { return channel.mirrors.front().starts_with("file:"); }

    void load(const Config& config) {
        state = slot.read();
        json = state ? slot.content(*state) : OpenFile();
        if (json && is_sharded() && !config.use_shards) json = {};
        // Drop the validators if the content is unusable, but keep what is known about missing forms.
        if (state && !state->identity.empty() && !json) forget_content();
    }
    [[nodiscard]] bool is_sharded() const { return state->form == shard_index.file; }
    void forget_content() {
        json = {};
        state->identity.clear();
        state->etag.clear();
        state->last_modified.clear();
        state->checked = 0;
        state->form.clear();
    }
    void settle() {
        settled = true;
        if (json) mark_used(json.path);
    }
    [[nodiscard]] bool known_absent() const { return state && state->identity.empty() && state->checked > 0; }
};

/// Whether the cached copy can be used without asking the server.
bool is_usable(const Task& task, const Config& config) {
    return task.state && !task.state->identity.empty() &&
           is_fresh(*task.state, std::max(config.local_repodata_ttl, 0), std::time(nullptr));
}

/// A string that changes whenever the file does; empty if it was just changed.
Result<std::string> signature(const fs::path& file) {
    struct stat info {};
    if (stat(file.c_str(), &info) != 0) return fail_errno("cannot read the package list", file.string());
    // Another change within the same clock tick would go unnoticed.
    if (info.st_mtim.tv_sec + 2 > std::time(nullptr)) return std::string();
    // Copying may preserve mtime, but not ctime.
    return fmt::format("{}:{}:{}.{:09}:{}.{:09}:{}", file.string(), info.st_size, info.st_mtim.tv_sec,
                       info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec, info.st_ino);
}

/// Prefers the plain file, from which the others are made. With the whole list on disk, shards would save
/// nothing.
const RepodataForm* local_form(const fs::path& directory) {
    std::error_code ignored;
    for (auto form = repodata_forms.rbegin(); form != repodata_forms.rend(); ++form)
        if (form->packing != Packing::shards && fs::is_regular_file(directory / form->file, ignored))
            return &*form;
    return nullptr;
}

/// Moves unpacked content into the cache and finishes the task with it.
Status keep(Task& task, RepodataState state, OpenFile& unpacked) {
    TRY(task.slot.adopt(unpacked, state));
    task.json = unpacked;
    task.state = std::move(state);
    TRY(task.slot.write(*task.state));
    task.slot.remove_outdated(*task.state);
    task.settle();
    return {};
}

Status read_local(Task& task, const fs::path& cache, const RepodataOptions& options) {
    const fs::path directory = file_url_path(task.channel.mirrors.front()) + "/" + task.subdir;
    const auto* form = local_form(directory);
    if (form == nullptr) {
        task.state = {.url = task.url};
        task.json = {};
        task.settle();
        return {};
    }
    const auto file = directory / form->file;
    auto source = TRY(signature(file));
    if (task.json && !source.empty() && task.state->source == source) {
        task.settle();
        return {};
    }
    // The owner may change the file at any time, so use the copy.
    auto opened = TRY(OpenFile::open(file));
    Temporary unpacked(cache);
    if (!unpacked) return fail_errno("cannot write to the cache", cache.string());
    auto identity =
        TRY(unpack_repodata(opened, form->packing, unpacked.file(), options.largest, file.string()));
    return keep(task,
                {.url = task.url,
                 .form = std::string(form->file),
                 .identity = std::move(identity),
                 .source = std::move(source)},
                unpacked.file());
}

/// A file to fetch for a task.
struct Download {
    Task* task;
    const RepodataForm* form;
    Temporary file;
};

class Fetcher {
public:
    Fetcher(std::vector<std::unique_ptr<Task>>& tasks, const Config& config, const RepodataOptions& options,
            const fs::path& cache)
        : config_(config), options_(options), cache_(cache) {
        for (const auto& task : tasks)
            if (!task->settled) pending_.push_back(task.get());
    }

    Status run() {
        TRY(lock());
        if (pending_.empty()) return {};
        Stage stage("Fetching package lists");
        for (const auto& form : repodata_forms)
            TRY(fetch_form(form, stage));
        for (Task* task : pending_)
            if (!task->settled) absent(*task);
        stage.finish(fmt::format("{} of {} new, {}", new_, pending_.size(), human_bytes(bytes_)));
        return {};
    }

private:
    /// Of several builds only one downloads a file, and the others use the result. All take the locks in the
    /// same order, which prevents deadlocks.
    Status lock() {
        std::vector<Task*> sorted = pending_;
        std::ranges::sort(sorted, {}, [](const Task* task) { return task->slot.lock(); });
        for (Task* task : sorted) {
            task->lock = TRY(lock_of(*task));
            task->load(config_);
            if (is_usable(*task, config_)) task->settle();
        }
        std::erase_if(pending_, [](const Task* task) { return task->settled; });
        return {};
    }

    Result<FileLock> lock_of(const Task& task) {
        auto lock = TRY(try_lock(task.slot.lock()));
        if (lock.state != LockState::busy) return lock;
        if (!std::exchange(told_to_wait_, true))
            log::info("Waiting for another build, which fetches package lists");
        return wait_for_lock(task.slot.lock());
    }

    [[nodiscard]] bool is_lacking(const Task& task, const RepodataForm& form) const {
        if (form.packing == Packing::shards && !config_.use_shards) return true;
        if (!task.state || form.packing == Packing::none) return false;
        const auto found = task.state->lacking.find(std::string(form.file));
        return found != task.state->lacking.end() && std::time(nullptr) - found->second < day;
    }

    Status fetch_form(const RepodataForm& form, Stage& stage) {
        std::vector<Download> downloads;
        std::vector<http::Request> requests;
        for (Task* task : pending_) {
            if (task->settled || is_lacking(*task, form)) continue;
            Download download{task, &form, Temporary(cache_)};
            if (!download.file) return fail_errno("cannot write to the cache", cache_.string());
            requests.push_back(request(download));
            downloads.push_back(std::move(download));
        }
        if (requests.empty()) return {};
        const http::Observer observer{
            .progress = [&](const http::Progress& now) { stage.advance(now.done, now.total, now.rate); }};
        const auto results = http::fetch(requests, config_.http, observer);
        std::vector<std::future<Status>> unpacking;
        for (std::size_t at = 0; at < downloads.size(); ++at)
            TRY(take(downloads[at], results[at], unpacking));
        stage.detail("unpacking");
        Status outcome;
        for (auto& one : unpacking)
            if (auto done = one.get(); !done && outcome) outcome = std::move(done);
        return outcome;
    }

    [[nodiscard]] http::Request request(const Download& download) const {
        const auto& task = *download.task;
        http::Request request;
        for (const auto& mirror : task.channel.mirrors)
            request.urls.push_back(mirror + "/" + task.subdir + "/" + std::string(download.form->file));
        request.file = download.file.file().path;
        request.limit = download.form->packing == Packing::shards ? largest_shard : options_.largest;
        request.compress = download.form->packing == Packing::none;
        // Servers may answer "forbidden" for a missing form, so only the last form's answer is an error.
        request.answers =
            request.compress ? std::vector<long>{404, 410} : std::vector<long>{401, 403, 404, 410};
        if (task.state && task.state->form == download.form->file) {
            request.etag = task.state->etag;
            request.last_modified = task.state->last_modified;
        }
        return request;
    }

    Status take(Download& download, const Result<http::Response>& result,
                std::vector<std::future<Status>>& unpacking) {
        auto& task = *download.task;
        if (!result) {
            auto error = result.error();
            if (task.state && !task.state->identity.empty() && !interrupted())
                error.hint += "\nThe cache has an older copy of this package list, which --offline uses.";
            return fail(std::move(error));
        }
        if (!task.state) task.state = {.url = task.url};
        if (result->status == 304) {
            remember_answer(task, *result);
            task.settle();
            return task.slot.write(*task.state);
        }
        if (result->status != 200) {
            task.state->lacking[std::string(download.form->file)] = std::time(nullptr);
            return {};
        }
        ++new_;
        bytes_ += result->size;
        task.state->lacking.erase(std::string(download.form->file));
        task.state->form = download.form->file;
        task.state->identity = result->sha256;
        task.state->etag.clear();
        task.state->last_modified.clear();
        remember_answer(task, *result);
        // The file that was hashed, whatever its path names by now.
        download.file.file().file = result->file;
        unpacking.push_back(std::async(std::launch::async, [this, &download] { return unpack(download); }));
        return {};
    }

    static void remember_answer(Task& task, const http::Response& response) {
        const auto header = [&](const char* name) {
            const auto found = response.headers.find(name);
            return found == response.headers.end() ? "" : found->second;
        };
        auto& state = *task.state;
        if (const auto etag = header("etag"); !etag.empty()) state.etag = etag;
        if (const auto time = header("last-modified"); !time.empty()) state.last_modified = time;
        state.max_age = max_age(header("cache-control"));
        state.checked = std::time(nullptr);
    }

    Status unpack(const Download& download) const {
        auto& task = *download.task;
        Temporary unpacked(cache_);
        if (!unpacked) return fail_errno("cannot write to the cache", cache_.string());
        const auto name = task.url + "/" + std::string(download.form->file);
        TRY(unpack_repodata(download.file.file(), download.form->packing, unpacked.file(), options_.largest,
                            name));
        return keep(task, *task.state, unpacked.file());
    }

    /// For a subdir that the server has in no form.
    static void absent(Task& task) {
        if (!task.state) task.state = {.url = task.url};
        task.forget_content();
        task.state->checked = std::time(nullptr);
        task.settle();
        // only needed for --offline
        if (auto written = task.slot.write(*task.state); !written) log::detail(to_string(written.error()));
    }

    const Config& config_;
    const RepodataOptions& options_;
    const fs::path& cache_;
    std::vector<Task*> pending_;
    bool told_to_wait_ = false;
    std::size_t new_ = 0;
    std::uint64_t bytes_ = 0;
};

Status use_cache_alone(Task& task) {
    if (task.known_absent() || (task.state && !task.state->identity.empty())) {
        task.settle();
        return {};
    }
    return fail(
        {.what = "the cache does not have this package list",
         .why = "--offline forbids using the network",
         .where = task.url,
         .hint =
             "Run once without --offline, with the same cache, on a machine that can reach the channel."});
}

Status check_channels(const std::vector<Channel>& channels, const std::vector<std::string>& subdirs,
                      const std::vector<std::unique_ptr<Task>>& tasks) {
    for (const auto& channel : channels) {
        const bool exists = std::ranges::any_of(
            tasks, [&](const auto& task) { return &task->channel == &channel && task->json; });
        if (exists) continue;
        return fail_input("this is not a channel",
                          fmt::format("there is no repodata.json for {}", fmt::join(subdirs, " or ")),
                          channel.url,
                          channel.url.starts_with("file:")
                              ? "Give the directory that contains linux-64 and noarch. `conda index` creates "
                                "their package lists."
                              : "Check the channel's name. A private channel needs a token or a login.");
    }
    return {};
}

} // namespace

Result<std::vector<Repodata>> fetch_repodata(const std::vector<Channel>& channels,
                                             const std::vector<std::string>& subdirs, const Config& config,
                                             const RepodataOptions& options) {
    TRY(make_repodata(options.cache));
    const auto cache = repodata_in(options.cache);
    remove_abandoned(cache);

    std::vector<std::unique_ptr<Task>> tasks;
    for (const auto& channel : channels)
        for (const auto& subdir : subdirs)
            tasks.push_back(std::make_unique<Task>(channel, subdir, cache));
    const bool offline = options.offline || config.offline;
    for (const auto& task : tasks) {
        task->load(config);
        if (task->is_local())
            TRY(read_local(*task, cache, options));
        else if (offline)
            TRY(use_cache_alone(*task));
        else if (is_usable(*task, config))
            task->settle();
    }
    TRY(Fetcher(tasks, config, options, cache).run());
    TRY(check_channels(channels, subdirs, tasks));

    std::vector<Repodata> result;
    for (const auto& task : tasks) {
        const auto place = static_cast<int>(&task->channel - channels.data());
        result.push_back({.channel = task->channel,
                          .subdir = task->subdir,
                          .priority = static_cast<int>(channels.size()) - place,
                          .json = task->json,
                          .sharded = task->json && task->is_sharded(),
                          .identity = task->state->identity,
                          .cache = cache});
    }
    return result;
}

} // namespace containerize::conda
