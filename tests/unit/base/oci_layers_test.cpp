// Layers are merged into the tree that they describe; the message about a hostile one names it.
#include "base/oci_layers.h"
#include "good.h"
#include "image/layers.h"
#include "image/writer.h"
#include "temporary.h"
#include "util/digest.h"

#include <array>
#include <cstdio>
#include <map>

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

namespace containerize::base {
namespace {

using test::TemporaryDirectory;

struct Item {
    mode_t type;
    std::string path;
    std::string content; ///< or a link's target
    mode_t mode = 0644;
    bool hardlink = false;
    std::map<std::string, std::string> xattrs = {};
};
Item file(const std::string& path, const std::string& content, mode_t mode = 0644) {
    return {AE_IFREG, path, content, mode};
}
Item directory(const std::string& path, mode_t mode = 0755) {
    return {AE_IFDIR, path, {}, mode};
}
Item symlink(const std::string& path, const std::string& target) {
    return {AE_IFLNK, path, target, 0777};
}
Item hardlink(const std::string& path, const std::string& target) {
    return {AE_IFREG, path, target, 0644, true};
}

std::string tar(const std::vector<Item>& items) {
    std::string bytes;
    archive* writer = archive_write_new();
    archive_write_set_format_pax_restricted(writer);
    archive_write_set_bytes_per_block(writer, 512);
    archive_write_open(
        writer, &bytes, nullptr,
        [](archive*, void* out, const void* data, std::size_t size) {
            static_cast<std::string*>(out)->append(static_cast<const char*>(data), size);
            return static_cast<la_ssize_t>(size);
        },
        nullptr);
    for (const auto& item : items) {
        archive_entry* entry = archive_entry_new();
        archive_entry_set_filetype(entry, item.type);
        archive_entry_set_pathname(entry, item.path.c_str());
        archive_entry_set_perm(entry, item.mode);
        archive_entry_set_mtime(entry, 1'000'000'000, 0);
        if (item.hardlink) archive_entry_set_hardlink(entry, item.content.c_str());
        if (item.type == AE_IFLNK) archive_entry_set_symlink(entry, item.content.c_str());
        const bool has_content = item.type == AE_IFREG && !item.hardlink;
        if (has_content) archive_entry_set_size(entry, static_cast<std::int64_t>(item.content.size()));
        for (const auto& [name, value] : item.xattrs)
            archive_entry_xattr_add_entry(entry, name.c_str(), value.data(), value.size());
        archive_write_header(writer, entry);
        if (has_content) archive_write_data(writer, item.content.data(), item.content.size());
        archive_entry_free(entry);
    }
    archive_write_close(writer);
    archive_write_free(writer);
    return bytes;
}

/// An archive of one empty file whose header claims a terabyte.
std::string terabyte(const std::string& path) {
    auto bytes = tar({file(path, "")});
    constexpr std::size_t size_at = 124;
    constexpr std::size_t sum_at = 148;
    bytes.replace(size_at, 12, std::string("\x80\0\0\0\0\0\x01\0\0\0\0\0", 12));
    bytes.replace(sum_at, 8, "        ");
    unsigned sum = 0;
    for (std::size_t i = 0; i < 512; ++i)
        sum += static_cast<unsigned char>(bytes[i]);
    std::array<char, 8> text{};
    std::snprintf(text.data(), text.size(), "%06o", sum);
    bytes.replace(sum_at, 8, text.data(), 8);
    return bytes;
}

std::string gzip(const std::string& plain) {
    std::string out(compressBound(plain.size()) + 32, '\0');
    z_stream stream{};
    deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
    stream.avail_in = static_cast<uInt>(plain.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

std::string zstd(const std::string& plain) {
    std::string out(ZSTD_compressBound(plain.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), 3));
    return out;
}

Layer layer_of(std::string bytes, const std::string& name, std::string digest = {},
               std::string diff_id = {}) {
    return {.name = name,
            .digest = std::move(digest),
            .diff_id = std::move(diff_id),
            .open = [bytes = std::move(bytes)]() -> Result<ReadMore> {
                auto at = std::make_shared<std::size_t>(0);
                auto copy = std::make_shared<std::string>(bytes);
                // In small pieces, as they come from a network.
                return ReadMore([at, copy]() -> Result<std::span<const std::byte>> {
                    const auto piece = std::as_bytes(std::span(*copy))
                                           .subspan(*at)
                                           .first(std::min<std::size_t>(777, copy->size() - *at));
                    *at += piece.size();
                    return piece;
                });
            }};
}

class Layers : public testing::Test {
protected:
    /// The paths of the merged image with their content or type. The top layer is last, as in manifests.
    std::map<std::string, std::string> merged(const std::vector<std::vector<Item>>& layers,
                                              std::uint64_t limit = 1U << 30U) {
        const auto path = place / ("image" + std::to_string(++made));
        auto writer = image::Writer::create(path, {});
        LayerMerge merge(*writer, limit);
        Status done;
        for (auto layer = layers.rbegin(); done && layer != layers.rend(); ++layer)
            done = merge.add(layer_of(tar(*layer), "layer " + std::to_string(layers.rend() - layer)));
        if (done) done = merge.finish();
        if (!done) return {{"refused", done.error().where + ": " + done.error().why}};
        left_out = merge.left_out();
        EXPECT_TRUE(writer->finish());
        std::map<std::string, std::string> tree;
        auto image = image::open_layers(std::vector{path});
        EXPECT_TRUE(image);
        list(**image, (*image)->root(), "", tree);
        return tree;
    }
    std::string refused(const std::vector<Item>& items) {
        const auto tree = merged({items});
        return tree.contains("refused") ? tree.at("refused") : "accepted";
    }

    void list(image::Layers& image, image::Reference reference, const std::string& prefix,
              std::map<std::string, std::string>& tree) {
        const auto listing = image.directory(reference);
        ASSERT_TRUE(listing);
        for (const auto& entry : (*listing)->entries) {
            const auto path = prefix + std::string((*listing)->name(entry));
            const auto inode = image.inode(entry.inode);
            ASSERT_TRUE(inode);
            if (S_ISDIR(inode->mode)) {
                tree[path] = "directory";
                list(image, entry.inode, path + "/", tree);
            } else if (S_ISLNK(inode->mode)) {
                tree[path] = "-> " + *image.read_link(entry.inode);
            } else {
                std::vector<image::Slice> slices;
                EXPECT_TRUE(image.read(entry.inode, 0, 1U << 20U, slices));
                std::string content;
                for (const auto& slice : slices)
                    content.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
                tree[path] = content + (inode->nlink > 1 ? " *" + std::to_string(inode->nlink) : "");
            }
        }
    }

    TemporaryDirectory place;
    LayerMerge::LeftOut left_out;
    int made = 0;
};
using Tree = std::map<std::string, std::string>;

TEST_F(Layers, UpperOnesReplaceAndRemove) {
    const auto tree = merged({{directory("./"), directory("etc/"), file("etc/a", "low"), file("etc/b", "low"),
                               directory("opt"), file("opt/x/y", "low"), file("gone/deep/file", "low")},
                              {file("etc/.wh.b", ""), file("./etc/c", "middle"), file("opt/.wh..wh..opq", ""),
                               file("opt/z", "middle"), file(".wh.gone", "")},
                              {file("etc/a", "top"), directory("gone"), file("gone/new", "top")}});
    EXPECT_EQ(tree, (Tree{{"etc", "directory"},
                          {"etc/a", "top"},
                          {"etc/c", "middle"},
                          {"gone", "directory"},
                          {"gone/new", "top"},
                          {"opt", "directory"},
                          {"opt/z", "middle"}}));
}

TEST_F(Layers, AWhiteoutIsForLowerLayersOnly) {
    EXPECT_EQ(merged({{file("a", "low"), file("d/x", "low")},
                      {file("a", "same"), file(".wh.a", ""), file("d/y", "same"), file(".wh.d", "")}}),
              (Tree{{"a", "same"}, {"d", "directory"}, {"d/y", "same"}}));
}

TEST_F(Layers, KindsReplaceEachOther) {
    EXPECT_EQ(merged({{file("file/inside", "low"), symlink("link", "elsewhere"), file("dir", "low")},
                      {file("file", "top"), directory("link"), file("link/x", "top"), directory("dir")}}),
              (Tree{{"dir", "directory"}, {"file", "top"}, {"link", "directory"}, {"link/x", "top"}}));
    // Within a layer, the last entry for a path wins.
    EXPECT_EQ(merged({{file("a", "1"), symlink("a", "x"), file("a", "2"), file("d/e", "3"), file("d", "4")}}),
              (Tree{{"a", "2"}, {"d", "4"}}));
}

TEST_F(Layers, HardLinksAreKept) {
    EXPECT_EQ(merged({{file("a", "low"), hardlink("b", "a"), hardlink("c", "./b"), hardlink("d", "/a")}}),
              (Tree{{"a", "low *4"}, {"b", "low *4"}, {"c", "low *4"}, {"d", "low *4"}}));
    // An upper layer may hide the file, and a lower one may contain it.
    EXPECT_EQ(merged({{file("a", "low"), hardlink("b", "a"), hardlink("c", "b")}, {file("a", "top")}}),
              (Tree{{"a", "top"}, {"b", "low *2"}, {"c", "low *2"}}));
    EXPECT_EQ(merged({{file("a", "low")}, {hardlink("b", "a")}, {file("other", "")}}),
              (Tree{{"a", "low *2"}, {"b", "low *2"}, {"other", ""}}));
    EXPECT_EQ(merged({{file("a", "low")}, {hardlink("b", "a")}, {file(".wh.a", "")}}), (Tree{{"b", "low"}}));
    EXPECT_EQ(merged({{file("x", "low"), hardlink("a", "x")}, {hardlink("b", "a")}, {file(".wh.x", "")}}),
              (Tree{{"a", "low *2"}, {"b", "low *2"}}));
    EXPECT_EQ(merged({{symlink("s", "there"), hardlink("t", "s")}}),
              (Tree{{"s", "-> there"}, {"t", "-> there"}}));
    EXPECT_TRUE(refused({hardlink("b", "nowhere")})
                    .contains("'b' is a hard link to 'nowhere', which is in no layer"));
}

TEST_F(Layers, HardLinksInACircleAreRefused) {
    const std::string circle = "is a hard link to a hard link to itself";
    EXPECT_TRUE(refused({hardlink("a", "b"), hardlink("b", "a")}).contains("'b' " + circle));
    EXPECT_TRUE(
        refused({hardlink("a", "b"), hardlink("c", "a"), hardlink("b", "c")}).contains("'b' " + circle));
    EXPECT_TRUE(
        refused({hardlink("a", "b"), hardlink("b", "a"), hardlink("c", "a")}).contains("'b' " + circle));
    // Across two layers this is no loop: both are the file of the lowest layer.
    EXPECT_EQ(merged({{file("a", "low")}, {hardlink("b", "a")}, {hardlink("a", "b")}}),
              (Tree{{"a", "low *2"}, {"b", "low *2"}}));
}

TEST_F(Layers, OfALinkThatIsThereTwiceTheLastCounts) {
    EXPECT_EQ(merged({{file("b", "b"), file("c", "c")}, {hardlink("a", "b"), hardlink("a", "c")}}),
              (Tree{{"a", "c *2"}, {"b", "b"}, {"c", "c *2"}}));
    // A hard link to a symbolic link is a copy of it, even if it comes first.
    EXPECT_EQ(merged({{hardlink("a", "s"), symlink("s", "there"), hardlink("b", "a")}}),
              (Tree{{"a", "-> there"}, {"b", "-> there"}, {"s", "-> there"}}));
}

TEST_F(Layers, TheRootIsNoLink) {
    auto root = directory("./");
    root.hardlink = true;
    root.content = "a";
    EXPECT_TRUE(refused({file("a", "x"), root}).contains("has no name"));
}

TEST_F(Layers, WhatMeansNothingInAnImageIsLeftOutAndCounted) {
    auto with_attributes = file("f", "x", 04755);
    with_attributes.xattrs = {
        {"user.mine", "v"}, {"user.overlay.opaque", "y"}, {"security.capability", "c"}, {"trusted.t", "t"}};
    EXPECT_EQ(merged({{with_attributes,
                       {AE_IFCHR, "dev/null", {}},
                       {AE_IFBLK, "dev/sda", {}},
                       {AE_IFIFO, "pipe", {}}}}),
              (Tree{{"f", "x"}}));
    EXPECT_EQ(left_out.devices, 3U);
    EXPECT_EQ(left_out.capabilities, 1U);
    EXPECT_EQ(left_out.attributes, 2U);
    auto image = test::good(image::open_layers(std::vector{place / "image1"}));
    const auto reference = test::good(image->find("f"));
    EXPECT_EQ(image->inode(reference)->mode & 07777U, 04755U);
    const auto xattrs = test::good(image->xattrs(reference));
    ASSERT_EQ(xattrs.size(), 1U);
    EXPECT_EQ(xattrs.front().name, "user.mine");
}

TEST_F(Layers, NamesMayBeAnyBytes) {
    const std::string odd = "n\xC3\xBC\nx \\";
    EXPECT_EQ(merged({{file(odd, "1"), file("\xFF\xFE", "2"),
                       file(std::string(200, 'l') + "/" + std::string(255, 'm'), "3")}})
                  .size(),
              4U);
    EXPECT_EQ(merged({{file(odd, "1")}}), (Tree{{odd, "1"}}));
}

TEST_F(Layers, HostileEntriesAreNamed) {
    EXPECT_EQ(refused({file("../../etc/passwd", "x")}),
              "layer 1: the entry '../../etc/passwd' points outside the image");
    EXPECT_EQ(refused({file("a/../../b", "x")}), "layer 1: the entry 'a/../../b' points outside the image");
    EXPECT_EQ(refused({file("/etc/passwd", "x")}),
              "layer 1: the entry '/etc/passwd' points outside the image");
    EXPECT_EQ(refused({symlink("root", "/"), file("root/etc/passwd", "x")}),
              "layer 1: the entry 'root/etc/passwd' is below a link of the same layer");
    EXPECT_EQ(refused({file("f", ""), file("f/g", "x")}),
              "layer 1: the entry 'f/g' is below a file of the same layer");
    EXPECT_EQ(refused({file("a", ""), hardlink("b", "../../etc/shadow")}),
              "layer 1: the entry 'b' is a hard link that points outside the image");
    EXPECT_EQ(refused({file("d/.wh...", "")}), "layer 1: the entry 'd/.wh...' is a whiteout without a name");
    EXPECT_EQ(refused({file("d/.wh.", "")}), "layer 1: the entry 'd/.wh.' is a whiteout without a name");
    EXPECT_EQ(refused({directory("d"), hardlink("l", "d")}),
              "layer 1: the entry 'l' is a hard link to a directory");
    EXPECT_TRUE(refused({file(std::string(5000, 'p'), "x")}).contains("points outside"));
    auto writer = image::Writer::create(place / "image", {});
    LayerMerge merge(*writer, 1U << 30U);
    EXPECT_EQ(test::error_of(merge.add(layer_of(terabyte("huge"), "layer"))).why,
              "the entry 'huge' has a declared size of 1.1 TB, and the limit for an image "
              "is 1.1 GB (`base_limit` in the configuration)");
}

TEST_F(Layers, AllTogetherHaveALimit) {
    const std::string zeros(3U << 20U, '\0');
    EXPECT_TRUE(merged({{file("a", zeros)}}, 4U << 20U).contains("a"));
    const auto refused_both = merged({{file("a", zeros)}, {file("b", zeros)}}, 4U << 20U);
    ASSERT_TRUE(refused_both.contains("refused"));
    // Hidden files count as well: a bomb may be in a lower layer.
    EXPECT_TRUE(merged({{file("a", zeros)}, {file("a", zeros)}}, 4U << 20U).contains("refused"));
}

TEST_F(Layers, AreDecompressedAndVerified) {
    const auto plain = tar({file("a", std::string(100000, 'x'))});
    const auto read = [&](const std::string& bytes, const std::string& digest, const std::string& diff_id) {
        const auto path = place / ("image" + std::to_string(++made));
        auto writer = image::Writer::create(path, {});
        LayerMerge merge(*writer, 1U << 30U);
        const auto done = merge.add(layer_of(bytes, "layer", digest, diff_id));
        return done ? "good" : done.error().what + ": " + done.error().why;
    };
    const auto diff_id = "sha256:" + sha256(plain);
    for (const auto& bytes :
         {plain, gzip(plain), zstd(plain), gzip(plain.substr(0, 70000)) + gzip(plain.substr(70000)),
          zstd(plain.substr(0, 70000)) + zstd(plain.substr(70000))}) {
        const auto digest = "sha256:" + sha256(bytes);
        EXPECT_EQ(read(bytes, digest, diff_id), "good");
        EXPECT_TRUE(
            read(bytes, diff_id.substr(0, 70) + "a", diff_id).contains("not the one that the image lists"));
        EXPECT_TRUE(read(bytes, digest, digest.substr(0, 70) + "a").contains("diff_id"));
        EXPECT_NE(read(bytes.substr(0, bytes.size() / 2), digest, diff_id), "good");
        EXPECT_NE(read(bytes + "more", digest, diff_id), "good");
    }
    EXPECT_NE(read("no archive at all, but some text that goes on and on for a while", {}, {}), "good");
    EXPECT_EQ(read("", "sha256:" + sha256(""), {}), "good");
}

} // namespace
} // namespace containerize::base
