#include "cluster/site.h"

#include "cluster/site_files.h"
#include "core/cpus.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "core/variables.h"
#include "util/yaml_size.h"

#include <algorithm>
#include <set>

#include <yaml-cpp/yaml.h>

namespace containerize::cluster {

namespace {

constexpr std::size_t largest_file = 1U << 20U;

Settings pairs_of(const YAML::Node& node) {
    Settings pairs;
    for (const auto& entry : node)
        pairs.emplace_back(entry.first.as<std::string>(), entry.second.as<std::string>());
    return pairs;
}

/// The CPUs of a hexadecimal mask, which may have more than 64 bits.
std::vector<unsigned> cpus_of_mask(const YAML::Node& node) {
    constexpr unsigned bits_per_digit = 4;
    const auto text = node.as<std::string>();
    const auto digits = std::string_view(text).substr(text.starts_with("0x") ? 2 : 0);
    const auto refuse = [&] {
        throw YAML::RepresentationException(node.Mark(), "an affinity mask is not a hexadecimal number");
    };
    if (digits.empty() || digits.size() > most_cpus / bits_per_digit) refuse();
    std::vector<unsigned> cpus;
    for (unsigned place = 0; place < digits.size(); ++place) {
        const auto digit = to_number<unsigned>(digits.substr(digits.size() - 1 - place, 1), 16);
        if (!digit) refuse();
        for (unsigned bit = 0; bit < bits_per_digit; ++bit)
            if ((*digit >> bit & 1U) != 0) cpus.push_back(place * bits_per_digit + bit);
    }
    return cpus;
}

Affinity affinity_of(const YAML::Node& node) {
    Affinity affinity;
    affinity.numa = node.IsScalar() && node.as<std::string>() == "numa";
    if (node.IsSequence())
        for (const auto& mask : node)
            affinity.masks.push_back(cpus_of_mask(mask));
    return affinity;
}

/// Throws YAML::Exception.
Site site_of(const YAML::Node& root) {
    Site site;
    site.name = root["name"].as<std::string>();
    site.description = root["description"].as<std::string>();
    site.detect = pairs_of(root["detect"]);
    site.environment = pairs_of(root["environment"]);
    site.caches = pairs_of(root["caches"]);
    if (const auto affinity = root["affinity"]) site.affinity = affinity_of(affinity);
    if (const auto count = root["devices_per_gpu"]) site.devices_per_gpu = count.as<unsigned>();
    for (const auto& line : root["job"])
        site.job.push_back(line.as<std::string>());
    return site;
}

Status check_names(const YAML::Node& root, const Site& site, const std::string& where) {
    static const std::set<std::string> keys = {"name",   "description", "detect",          "environment",
                                               "caches", "affinity",    "devices_per_gpu", "job"};
    for (const auto& entry : root)
        if (!keys.contains(entry.first.as<std::string>()))
            return fail_input("unknown key in a site profile", entry.first.as<std::string>(), where);
    for (const auto* pairs : {&site.detect, &site.environment, &site.caches})
        for (const auto& [name, value] : *pairs)
            if (!is_variable_name(name) || value.find('\n') != value.npos)
                return fail_input("invalid variable in a site profile", name, where);
    // It becomes the name of a directory, so it must not be a path.
    for (const auto& [name, directory] : site.caches)
        if (!is_variable_name(directory))
            return fail_input("cache names consist of letters, digits and '_'", directory, where);
    return {};
}

bool is_here(const Site& site, const Environment& variables) {
    return !site.detect.empty() && std::ranges::all_of(site.detect, [&](const auto& pair) {
        return named_variable(variables, pair.first) == pair.second;
    });
}

} // namespace

Result<Site> parse_site(std::string_view text, const std::string& where) {
    try {
        if (most_yaml_nodes(text) > most_nodes_by_hand)
            return fail_input("the site profile has too many entries", {}, where);
        const auto root = YAML::Load(std::string(text));
        if (!root.IsMap()) return fail_input("a site profile must be a mapping", {}, where);
        auto site = site_of(root);
        TRY(check_names(root, site, where));
        return site;
    } catch (const YAML::Exception& problem) {
        const auto line =
            problem.mark.is_null() ? std::string() : ":" + std::to_string(problem.mark.line + 1);
        return fail_input("invalid site profile", problem.msg, where + line,
                          "name: and description: are required. detect:, environment:, caches:, affinity:, "
                          "devices_per_gpu: and job: are optional.");
    }
}

std::vector<std::string> site_names() {
    std::vector<std::string> names;
    for (const auto& [name, text] : site_files)
        names.emplace_back(name);
    return names;
}

Result<Site> find_site(const std::string& wanted, const Environment& variables) {
    if (wanted.find('/') != wanted.npos) {
        const auto text = TRY(read_input_file(wanted, largest_file));
        return parse_site(text, wanted);
    }
    for (const auto& [name, text] : site_files) {
        if (!wanted.empty() && wanted != name) continue;
        auto site = parse_site(text, std::string(name));
        if (!site || !wanted.empty() || is_here(*site, variables)) return site;
    }
    if (wanted.empty()) return find_site("generic", variables);
    return fail_input("there is no site profile of this name", {}, wanted,
                      "Available: " + joined(site_names(), ", ") +
                          ". The path of a file of your own must contain a '/'.");
}

} // namespace containerize::cluster
