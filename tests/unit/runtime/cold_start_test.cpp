// How images are read ahead: the settings of sites, and the stripes of files on Lustre.
#include "../temporary.h"
#include "runtime/cold_start.h"

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

namespace containerize::runtime {
namespace {

using When = PrefetchSetting::When;

TEST(PrefetchSetting, IsWhenAndPerhapsHow) {
    EXPECT_EQ(parse_prefetch("auto")->when, When::automatic);
    EXPECT_EQ(parse_prefetch("on")->when, When::always);
    EXPECT_EQ(parse_prefetch("off")->when, When::never);
    const auto setting = parse_prefetch("on:1M:32");
    ASSERT_TRUE(setting);
    EXPECT_EQ(setting->when, When::always);
    EXPECT_EQ(setting->size, 1U << 20U);
    EXPECT_EQ(setting->depth, 32U);
    EXPECT_EQ(parse_prefetch("auto:64K:1")->size, 64U << 10U);
    EXPECT_EQ(parse_prefetch("auto:65537:1")->size, 65537U);
    for (const auto* bad :
         {"", "yes", "on:", "on:4M", "on:4M:", "on:4M:0", "on:4M:65", "on:4M:8:1", "on:63K:8", "on:65M:8",
          "on:-4M:8", "on:4G:8", "on:4m:8", "ON", " on", "on:99999999999M:8"}) {
        const auto read = parse_prefetch(bad);
        ASSERT_FALSE(read) << bad;
        EXPECT_EQ(read.error().fault, Fault::input);
    }
}

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
    EXPECT_EQ(profile_of(directory.path() / "env.sqfs"), file);
    const Fd opened(open(file.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE(read_profile(opened.get(), file, digest));
    EXPECT_FALSE(read_profile(opened.get(), file, std::string(64, 'b')));
    const Fd place(open(directory.path().c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_FALSE(read_profile(place.get(), directory.path(), digest));
}

} // namespace
} // namespace containerize::runtime
