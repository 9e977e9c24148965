#include "gpu/cdi.h"

#include "gpu/libraries.h"
#include "util/json.h"
#include "util/yaml_size.h"

#include <algorithm>
#include <array>
#include <span>

#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

namespace containerize::gpu {

namespace {

using nlohmann::json;

constexpr std::size_t largest_file = 4U << 20U;
constexpr int deepest = 32;

// Locations of driver files. Nothing else in a container may be covered.
constexpr std::array<std::string_view, 18> mount_places = {
    "/usr/lib/",       "/usr/lib64/",  "/lib/",           "/lib64/",     "/usr/local/lib/",   "/opt/",
    "/usr/bin/",       "/usr/sbin/",   "/usr/local/bin/", "/usr/share/", "/usr/local/share/", "/run/nvidia",
    "/var/run/nvidia", "/etc/OpenCL/", "/etc/vulkan/",    "/etc/glvnd/", "/etc/egl/",         "/etc/nvidia"};
constexpr std::array<std::string_view, 4> node_places = {"/dev/nvidia", "/dev/dri/", "/dev/gdrdrv",
                                                         "/dev/kfd"};

bool is_plain_path(std::string_view path) {
    if (!path.starts_with('/') || path.size() > 4096) return false;
    if (std::ranges::any_of(path, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }))
        return false;
    const std::string whole = std::string(path) + "/";
    return whole.find("/../") == std::string::npos && whole.find("/./") == std::string::npos &&
           whole.find("//") == std::string::npos;
}

bool is_in(std::string_view path, std::span<const std::string_view> places) {
    return std::ranges::any_of(places, [&](std::string_view place) {
        return path.starts_with(place) && path.size() > place.size();
    });
}

/// Converts YAML to JSON. A specification consists of strings, lists and maps only.
json as_json(const YAML::Node& node, int depth = 0) {
    if (depth > deepest) throw YAML::Exception(node.Mark(), "it is nested too deeply");
    if (node.IsSequence()) {
        json list = json::array();
        for (const auto& one : node)
            list.push_back(as_json(one, depth + 1));
        return list;
    }
    if (node.IsMap()) {
        json map = json::object();
        for (const auto& one : node)
            map[one.first.as<std::string>()] = as_json(one.second, depth + 1);
        return map;
    }
    return node.IsScalar() ? json(node.Scalar()) : json();
}

std::string reason_of_yaml(const YAML::Exception& problem) {
    return (problem.mark.is_null() ? "" : "line " + std::to_string(problem.mark.line + 1) + ": ") +
           problem.msg.substr(0, 300);
}

Result<json> parse_document(std::string_view text, const std::string& file) {
    const auto bad = [&](const std::string& why) {
        return fail({.what = "cannot read the CDI specification", .why = why, .where = file});
    };
    if (text.size() > largest_file) return bad("it is too large");
    try {
        if (file.ends_with(".json")) return parse_json(text);
        if (most_yaml_nodes(text) > most_nodes_by_hand) return bad("it has too many entries");
        // YAML aliases can expand to much more than their size; real files have none.
        if (text.find('*') != std::string_view::npos && text.find('&') != std::string_view::npos)
            return bad("it uses aliases");
        return as_json(YAML::Load(std::string(text)));
    } catch (const json::exception& problem) {
        return bad(reason(problem, text));
    } catch (const YAML::Exception& problem) {
        return bad(reason_of_yaml(problem));
    }
}

/// The array member `name`; an empty one if there is none.
const json& list_of(const json& object, const char* name) {
    static const json none = json::array();
    const auto found = object.find(name);
    return found != object.end() && found->is_array() ? *found : none;
}

class EditsParser {
public:
    explicit EditsParser(std::vector<std::string>& refused) : refused_(refused) {}

    CdiEdits parse(const json& object) && {
        for (const auto& mount : list_of(object, "mounts"))
            if (mount.is_object()) add_mount(text_of(mount, "hostPath"), text_of(mount, "containerPath"));
        for (const auto& node : list_of(object, "deviceNodes"))
            if (node.is_object()) add_node(text_of(node, "path"), text_of(node, "hostPath"));
        for (const auto& line : texts_of(object, "env"))
            add_variable(line);
        for (const auto& hook : list_of(object, "hooks"))
            if (hook.is_object()) add_hook(texts_of(hook, "args"));
        return std::move(edits_);
    }

private:
    void refuse(const std::string& what, const std::string& why) { refused_.push_back(what + ": " + why); }

    void add_mount(const std::string& source, const std::string& target) {
        for (const auto& path : {source, target})
            if (const auto why = mount_objection(path); !why.empty())
                return refuse("the mount of " + source + " at " + target, path + ": " + why);
        edits_.mounts.emplace_back(source, target);
    }

    void add_node(const std::string& path, const std::string& on_host) {
        const bool same = on_host.empty() || on_host == path;
        if (!same || !is_plain_path(path) || !is_in(path + "/", node_places))
            return refuse("the device node " + path,
                          same ? "it is not an accelerator" : "its path would change");
        edits_.nodes.push_back(path);
    }

    void add_variable(const std::string& line) {
        const auto equals = line.find('=');
        const auto name = line.substr(0, equals);
        // These are for NVIDIA's own runtime, or name paths that differ here.
        if (name == "NVIDIA_VISIBLE_DEVICES" || name.starts_with("NVIDIA_CTK_")) return;
        if (equals == std::string::npos || !name.starts_with("NVIDIA_"))
            return refuse("the variable " + name, "only the driver's variables (NVIDIA_...) are set");
        edits_.environment.emplace_back(name, line.substr(equals + 1));
    }

    // Hooks are never executed: the relevant ones are recognised by their arguments.
    void add_hook(const std::vector<std::string>& arguments) {
        const auto has = [&](std::string_view word) {
            return std::ranges::find(arguments, word) != arguments.end();
        };
        if (has("enable-cuda-compat")) edits_.cuda_compat = true;
        if (!has("create-symlinks")) return;
        for (std::size_t i = 0; i + 1 < arguments.size(); ++i)
            if (arguments[i] == "--link") add_link(arguments[i + 1]);
    }

    void add_link(const std::string& text) {
        const auto separator = text.find("::");
        const auto target = text.substr(0, separator);
        const auto path = separator == std::string::npos ? "" : text.substr(separator + 2);
        const auto why = path.empty() ? "it does not have the form TARGET::PATH" : mount_objection(path);
        if (!why.empty()) return refuse("the link " + text, why);
        edits_.links.emplace_back(path, target);
    }

    std::vector<std::string>& refused_;
    CdiEdits edits_;
};

} // namespace

std::string mount_objection(const std::string& path) {
    if (!is_plain_path(path)) return "it is not an absolute path without '..'";
    if (!is_in(path, mount_places) && path != "/tmp/nvidia-mps") return "drivers have no files there";
    if (is_system_library(name_of(path)))
        return "the C library and related libraries must be the image's own";
    return {};
}

Result<CdiSpecification> parse_cdi(std::string_view text, const std::string& file) {
    const auto document = TRY(parse_document(text, file));
    CdiSpecification specification;
    specification.file = file;
    specification.kind = text_of(document, "kind");
    if (specification.kind.find('/') == std::string::npos)
        return fail({.what = "cannot read the CDI specification",
                     .why = "its kind does not have the form vendor/class",
                     .where = file});
    const auto edits_of = [&](const json& object) {
        return EditsParser(specification.refused).parse(object_of(object, "containerEdits"));
    };
    specification.common = edits_of(document);
    for (const auto& device : list_of(document, "devices"))
        if (device.is_object()) specification.devices.emplace_back(text_of(device, "name"), edits_of(device));
    return specification;
}

std::vector<CdiSpecification> read_cdi(const TreeView& host, std::string_view kind,
                                       std::vector<std::string>& notes) {
    std::vector<CdiSpecification> found;
    for (const char* directory : {"/var/run/cdi", "/etc/cdi"}) {
        for (const auto& name : host.list(directory)) {
            if (!name.ends_with(".json") && !name.ends_with(".yaml") && !name.ends_with(".yml")) continue;
            const auto path = std::string(directory) + "/" + name;
            auto parsed = parse_cdi(host.text(path, largest_file + 1), path);
            if (!parsed)
                notes.push_back(to_string(parsed.error()) + ".");
            else if (parsed->kind == kind)
                found.push_back(std::move(*parsed));
        }
    }
    return found;
}

} // namespace containerize::gpu
