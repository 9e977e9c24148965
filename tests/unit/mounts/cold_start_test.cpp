// How images are read ahead: profiles, and the stripes of files on Lustre.
#include "../temporary.h"
#include "mounts/cold_start.h"

#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

namespace containerize::mounts {
namespace {

std::vector<std::byte> layout(std::uint32_t magic, std::uint32_t stripe) {
    std::vector<std::byte> bytes(56);
    std::memcpy(bytes.data(), &magic, sizeof magic);
    std::memcpy(bytes.data() + 24, &stripe, sizeof stripe);
    return bytes;
}

TEST(Stripes, AreTakenFromKnownLayoutsOnly) {
    EXPECT_EQ(stripe_size(layout(0x0BD10BD0, 1U << 20U)), 1U << 20U);
    EXPECT_EQ(stripe_size(layout(0x0BD30BD0, 4U << 20U)), 4U << 20U);
    EXPECT_EQ(stripe_size(layout(0x0BD60BD0, 1U << 20U)), 0U); // a layout of several components
    EXPECT_EQ(stripe_size(layout(0x0BD10BD0, 0)), 0U);
    EXPECT_EQ(stripe_size(layout(0x0BD10BD0, 0xFFFFFFFF)), 0U);
    const auto whole = layout(0x0BD10BD0, 1U << 20U);
    for (std::size_t size = 0; size < 28; ++size)
        EXPECT_EQ(stripe_size(std::span(whole).first(size)), 0U);
}

TEST(ProfileFile, CountsOnlyForItsImage) {
    const test::TemporaryDirectory directory;
    const std::string digest(64, 'a');
    const auto file =
        directory.write("env.sqfs.profile",
                        to_text(image::Profile{.image = digest, .blocks = {{.start = 96, .size_field = 5}}}));
    EXPECT_EQ(profile_of(directory / "env.sqfs"), file);
    const Fd opened(open(file.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE(read_profile(opened.get(), file, digest));
    EXPECT_FALSE(read_profile(opened.get(), file, std::string(64, 'b')));
    const Fd place(open(directory.path().c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_FALSE(read_profile(place.get(), directory.path(), digest));
}

} // namespace
} // namespace containerize::mounts
