#include "base/oci.h"

#include "base/image_reference.h"
#include "util/json.h"

#include <algorithm>
#include <ranges>
#include <set>

#include <sys/utsname.h>

#include <nlohmann/json.hpp>

namespace containerize::base {

namespace {

using nlohmann::json;

std::unexpected<Error> bad(const std::string& where, std::string why) {
    return fail({.what = "cannot use the image",
                 .why = std::move(why),
                 .where = where,
                 .hint = "Tell the image's maintainers. Another tag of it may work."});
}

Platform platform_of(const json& object) {
    return {.os = text_of(object, "os"),
            .architecture = text_of(object, "architecture"),
            .variant = text_of(object, "variant")};
}

Result<Descriptor> descriptor_of(const json& object, const std::string& where) {
    Descriptor descriptor{
        .media_type = text_of(object, "mediaType"), .digest = text_of(object, "digest"), .size = 0};
    // It becomes part of a file's name.
    if (!is_digest(descriptor.digest))
        return bad(where, "'" + descriptor.digest.substr(0, 100) + "' is not a SHA-256 digest");
    const auto size = object.find("size");
    if (size == object.end() || !size->is_number_unsigned())
        return bad(where, "it does not give the size of " + descriptor.digest);
    descriptor.size = size->get<std::uint64_t>();
    return descriptor;
}

Result<std::vector<IndexEntry>> index_of(const json& manifests, const std::string& where) {
    std::vector<IndexEntry> index;
    for (const auto& object : manifests) {
        auto descriptor = TRY(descriptor_of(object, where));
        index.push_back(
            {.manifest = std::move(descriptor),
             .platform = platform_of(object_of(object, "platform")),
             .tag = text_of(object_of(object, "annotations"), "org.opencontainers.image.ref.name")});
    }
    return index;
}

Result<Manifest> manifest_of(const json& root, const std::string& where) {
    auto config = TRY(descriptor_of(root.at("config"), where));
    Manifest manifest{.config = std::move(config)};
    const auto& layers = root.at("layers");
    if (layers.size() > most_layers)
        return bad(where, "it has " + std::to_string(layers.size()) + " layers, and at most " +
                              std::to_string(most_layers) + " are accepted");
    for (const auto& layer : layers) {
        auto descriptor = TRY(descriptor_of(layer, where));
        manifest.layers.push_back(std::move(descriptor));
    }
    return manifest;
}

bool fits(const Platform& platform, const std::string& architecture) {
    return (platform.os.empty() || platform.os == "linux") &&
           (platform.architecture.empty() || platform.architecture == architecture);
}

std::string described(const IndexEntry& entry) {
    std::string text = entry.tag.empty() ? "" : entry.tag + " for ";
    text += entry.platform.os + "/" + entry.platform.architecture;
    if (!entry.platform.variant.empty()) text += "/" + entry.platform.variant;
    return text;
}

} // namespace

Result<Document> parse_document(std::string_view text, const std::string& where) {
    try {
        const auto root = parse_json(text);
        Document document;
        if (root.contains("manifests")) {
            document.index = TRY(index_of(root.at("manifests"), where));
            return document;
        }
        if (root.value("schemaVersion", 0) == 1)
            return bad(where, "its manifest is in Docker's format 1, which cannot be verified");
        if (!root.contains("layers")) return bad(where, "it is not an image: its manifest lists no layers");
        document.manifest = TRY(manifest_of(root, where));
        return document;
    } catch (const json::exception& problem) {
        return bad(where, "its manifest is damaged: " + reason(problem, text));
    }
}

Result<ImageConfig> parse_config(std::string_view text, const std::string& where) {
    try {
        const auto root = parse_json(text);
        if (!root.is_object()) return bad(where, "its configuration is not an object");
        ImageConfig config;
        config.platform = platform_of(root);
        config.diff_ids = texts_of(object_of(root, "rootfs"), "diff_ids");
        const auto run = object_of(root, "config");
        for (auto& variable : texts_of(run, "Env"))
            if (const auto equals = variable.find('=');
                equals != std::string::npos && equals > 0 && variable.find('\0') == std::string::npos)
                config.environment.push_back(std::move(variable));
        config.working_directory = text_of(run, "WorkingDir");
        config.entrypoint = texts_of(run, "Entrypoint");
        config.command = texts_of(run, "Cmd");
        return config;
    } catch (const json::exception& problem) {
        return bad(where, "its configuration is damaged: " + reason(problem, text));
    }
}

std::string this_architecture() {
    utsname name{};
    if (uname(&name) != 0) return {};
    std::string machine = name.machine;
    if (machine == "x86_64") return "amd64";
    if (machine == "aarch64") return "arm64";
    return machine; // ppc64le, riscv64, s390x
}

Status check_architecture(const std::string& architecture, const std::string& where) {
    if (architecture.empty() || architecture == this_architecture()) return {};
    return fail_input("the image is for another architecture",
                      "it is for " + architecture + ", and this machine is " + this_architecture(), where);
}

Result<Descriptor> choose(const std::vector<IndexEntry>& index, const std::string& architecture,
                          const std::string& tag, const std::string& where) {
    std::vector<const IndexEntry*> found;
    std::set<std::string> others;
    for (const auto& entry : index) {
        if (fits(entry.platform, architecture) && (tag.empty() || entry.tag == tag))
            found.push_back(&entry);
        else if (entry.platform.os != "unknown") // attestations are no images
            others.insert(described(entry));
    }
    // Those that name their platform come first: the others may be for any.
    std::ranges::stable_partition(found,
                                  [](const auto* entry) { return !entry->platform.architecture.empty(); });
    std::set<std::string> tags;
    for (const auto* entry : found)
        tags.insert(entry->tag);
    constexpr std::ptrdiff_t most_listed = 20;
    std::string listed;
    for (const auto& one : (tags.size() > 1 ? tags : others) | std::views::take(most_listed))
        listed += (listed.empty() ? "" : ", ") + one.substr(0, 200);
    if (found.empty())
        return fail_input("there is no image for linux/" + architecture +
                              (tag.empty() ? "" : " with the tag " + tag),
                          listed.empty() ? "" : "available images: " + listed, where);
    if (tags.size() > 1)
        return fail_input("there are several images", "available images: " + listed, where,
                          "Append ':' and the tag.");
    return found.front()->manifest;
}

} // namespace containerize::base
