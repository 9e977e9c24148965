#include "good.h"
#include "mounts/staged_image.h"
#include "temporary.h"
#include "util/digest.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace containerize::mounts {
namespace {

class StagedImage : public testing::TestWithParam<manifest::StagePlace> {
protected:
    // Larger than one request.
    StagedImage() : bytes_((17U << 20U) + 5, 'x') {
        bytes_[bytes_.size() / 2] = 'y';
        file_ = directory_.write("image", bytes_);
        image_.reset(open(file_.c_str(), O_RDONLY | O_CLOEXEC));
    }
    [[nodiscard]] Result<Fd> stage(const std::string& digest) const {
        return stage_image(image_, file_, bytes_.size(), digest, GetParam());
    }

    test::TemporaryDirectory directory_;
    std::string bytes_;
    fs::path file_;
    Fd image_;
};

TEST_P(StagedImage, HasTheSameBytesAndNoName) {
    const auto copy = test::good(stage(sha256(bytes_)));
    struct stat info {};
    ASSERT_EQ(fstat(copy.get(), &info), 0);
    EXPECT_EQ(info.st_nlink, 0U);
    std::string read(bytes_.size(), '\0');
    ASSERT_EQ(pread(copy.get(), read.data(), read.size(), 0), static_cast<ssize_t>(read.size()));
    EXPECT_TRUE(read == bytes_);
}

TEST_P(StagedImage, IsRefusedIfItIsNotWhatWasBuilt) {
    EXPECT_EQ(test::error_of(stage(sha256("something else"))).what,
              "the copy of the image differs from the image that was built");
}

TEST_P(StagedImage, IsRefusedWhereThereIsNoRoom) {
    const auto refused =
        test::error_of(stage_image(image_, file_, std::uint64_t{1} << 60U, sha256(bytes_), GetParam()));
    EXPECT_EQ(refused.what, "the image is too large for a copy on this node");
}

INSTANTIATE_TEST_SUITE_P(Places, StagedImage,
                         testing::Values(manifest::StagePlace::local, manifest::StagePlace::ram));

} // namespace
} // namespace containerize::mounts
