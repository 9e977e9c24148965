#include "http/body.h"

#include "core/filesystem.h"
#include "core/read_write.h"

#include <memory>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace containerize::http {

Status Body::open() {
    if (request_.file.empty()) return {};
    const auto refuse = [this](std::string why) {
        return fail(
            {.what = "cannot write the download", .why = std::move(why), .where = request_.file.string()});
    };
    struct stat info {};
    for (const bool first : {true, false}) {
        file_ = Fd(::open(request_.file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
        if (!file_) return fail_errno("cannot write the download", request_.file.string());
        if (fstat(file_.get(), &info) != 0 || !S_ISREG(info.st_mode)) return refuse("it is not a file");
        if (is_ours_alone(info)) break;
        // Whoever can write to the file could change what was verified.
        if (!first || unlink(request_.file.c_str()) != 0) return refuse("other users can change it");
    }
    const auto present = static_cast<std::uint64_t>(info.st_size);
    const bool useful =
        has_digest() && !request_.compress && (request_.size == 0 || present <= request_.size);
    if (!useful || present == 0 || !take_in(present)) return restart();
    old_bytes_ = received_;
    return {};
}

/// Digests what an earlier run left in the file; returns false if that cannot be read.
bool Body::take_in(std::uint64_t present) {
    std::vector<char> buffer(std::size_t{1} << 20U);
    while (received_ < present) {
        const auto got =
            read_all_at(file_.get(), buffer.data(), buffer.size(), static_cast<off_t>(received_));
        if (got <= 0) return false;
        count({buffer.data(), static_cast<std::size_t>(got)});
    }
    return true;
}

void Body::count(std::string_view data) {
    sha256_.update(data.data(), data.size());
    if (!request_.md5.empty()) md5_.update(data.data(), data.size());
    received_ += data.size();
}

Status Body::restart() {
    text_.clear();
    sha256_ = Sha256();
    md5_ = Md5();
    received_ = 0;
    old_bytes_ = 0;
    if (file_ && ftruncate(file_.get(), 0) != 0)
        return fail_errno("cannot write the download", request_.file.string());
    return {};
}

Status Body::store(std::string_view data) {
    if (request_.file.empty())
        text_ += data;
    else if (!write_all_at(file_.get(), data, static_cast<off_t>(received_)))
        return fail_errno("cannot write the download", request_.file.string());
    count(data);
    return {};
}

bool Body::is_whole() {
    if (request_.size > 0 && received_ != request_.size) return false;
    digest_ = sha256_.finish();
    const auto md5 = request_.md5.empty() ? "" : md5_.finish();
    got_ = request_.sha256.empty() ? "md5 " + md5 : "sha256 " + digest_;
    return request_.sha256.empty() ? request_.md5.empty() || md5 == request_.md5 : digest_ == request_.sha256;
}

std::string Body::difference() const {
    if (request_.size > 0 && received_ != request_.size)
        return fmt::format("it has {} bytes, expected {}", received_, request_.size);
    return fmt::format("its checksum is wrong: expected {}, got {}",
                       request_.sha256.empty() ? "md5 " + request_.md5 : "sha256 " + request_.sha256, got_);
}

void Body::move_to(Response& response) {
    response.body = std::move(text_);
    response.size = received_;
    response.sha256 = digest_;
    if (file_) response.file = std::make_shared<const Fd>(std::move(file_));
}

} // namespace containerize::http
