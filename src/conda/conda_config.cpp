#include "conda/conda_config.h"

#include "conda/channel_logins.h"
#include "core/entries.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "core/url.h"
#include "core/variables.h"
#include "util/log.h"
#include "util/yaml_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

namespace containerize::conda {

namespace {

std::string with_home(std::string path, const Environment& environment) {
    const auto home = variable(environment, "HOME");
    if (!home.empty() && (path == "~" || path.starts_with("~/"))) path.replace(0, 1, home);
    return path;
}

void add_directory(std::vector<fs::path>& files, const fs::path& directory) {
    files.push_back(directory / ".condarc");
    files.push_back(directory / "condarc");
    for (const fs::path part : names_in(directory / "condarc.d"))
        if (part.extension() == ".yml" || part.extension() == ".yaml")
            files.push_back(directory / "condarc.d" / part);
    files.push_back(directory / ".mambarc");
}

std::vector<fs::path> site_files(const fs::path& root) {
    std::vector<fs::path> files;
    add_directory(files, root / "etc/conda");
    add_directory(files, root / "var/lib/conda");
    return files;
}

std::vector<fs::path> user_files(const Environment& environment) {
    std::vector<fs::path> files;
    const auto add = [&](Variable which, const fs::path& below = {}) {
        if (const fs::path base = variable(environment, which); base.is_absolute())
            add_directory(files, base / below);
    };
    const fs::path executable = variable(environment, "CONDA_EXE"); // ROOT/bin/conda
    if (executable.is_absolute() && executable.has_parent_path())
        add_directory(files, executable.parent_path().parent_path());
    add("MAMBA_ROOT_PREFIX");
    add("CONDA_ROOT");
    add("XDG_CONFIG_HOME", "conda");
    add("HOME", ".config/conda");
    add("HOME", ".conda");
    if (const fs::path home = variable(environment, "HOME"); home.is_absolute()) {
        files.push_back(home / ".condarc");
        files.push_back(home / ".mambarc");
    }
    add("CONDA_PREFIX");
    for (const auto name : VariableList{"CONDARC", "MAMBARC"})
        if (const auto file = variable(environment, name); !file.empty())
            files.emplace_back(with_home(file, environment));
    return files;
}

/// Unsupported keys that would change which packages are installed, or whether they are trusted.
constexpr auto not_supported = std::to_array<std::string_view>({"track_features",
                                                                "features",
                                                                "channel_settings",
                                                                "repodata_fns",
                                                                "use_only_tar_bz2",
                                                                "restore_free_channel",
                                                                "migrated_channel_aliases",
                                                                "migrated_custom_channels",
                                                                "allow_non_channel_urls",
                                                                "override_channels_enabled",
                                                                "subdir",
                                                                "subdirs",
                                                                "no_deps",
                                                                "only_deps",
                                                                "deps_modifier",
                                                                "update_modifier",
                                                                "aggressive_update_packages",
                                                                "allow_conda_downgrades",
                                                                "extra_safety_checks",
                                                                "signing_metadata_url_base",
                                                                "pip_interop_enabled",
                                                                "prefix_data_interoperability",
                                                                "virtual_packages",
                                                                "override_virtual_packages",
                                                                "freeze_installed",
                                                                "update_deps"});

enum class Flag { none, final, top, bottom };

struct ConfigFile {
    YamlFile yaml;

    [[nodiscard]] std::string where(const YAML::Node& node) const { return yaml.where(node); }
    /// The flag in a comment after the node: "- conda-forge  #!top".
    [[nodiscard]] Flag flag(const YAML::Node& node) const {
        const auto line = yaml.line(node);
        if (line.find("#!final") != line.npos) return Flag::final;
        if (line.find("#!top") != line.npos) return Flag::top;
        return line.find("#!bottom") == line.npos ? Flag::none : Flag::bottom;
    }
};

Result<std::optional<ConfigFile>> read_source(const fs::path& file) {
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) return std::nullopt;
    auto yaml = YamlFile::read(file, most_nodes_by_hand, true);
    if (!yaml) {
        yaml.error().hint += std::string(yaml.error().hint.empty() ? "" : "\n") +
                             "Correct the file, or ignore conda's configuration with --no-config.";
        return fail(std::move(yaml.error()));
    }
    if (!yaml->root() || yaml->root().IsNull()) return std::nullopt;
    if (!yaml->root().IsMap())
        return fail_input("the configuration must be a mapping of `key: value` lines", {},
                          yaml->where(yaml->root()),
                          "Correct the file, or ignore conda's configuration with --no-config.");
    return ConfigFile{std::move(*yaml)};
}

/// Merges the values of keys over all sources. Keeps the first mistake, which read_config() then returns.
class Reader {
public:
    Reader(const Environment& environment, std::vector<ConfigFile> sources)
        : environment_(environment), sources_(std::move(sources)) {}

    /// The effective value with its origin; nothing if it is not set.
    std::optional<Located> scalar(const std::string& key, const std::string& alias = {}) {
        std::optional<Located> result;
        for (const auto& source : sources_) {
            const auto found = find(source, key, alias);
            if (!found || found->second.IsNull()) continue;
            if (!found->second.IsScalar()) {
                refuse(source, found->second, key + " must be a single value");
                continue;
            }
            result = Located{value(found->second), source.where(found->second)};
            if (source.flag(found->first) == Flag::final) return result;
        }
        const auto name = variable_name(key);
        if (const auto text = named_variable(environment_, name); !text.empty()) result = Located{text, name};
        return result;
    }

    /// The items of all sources, highest priority first, without duplicates.
    std::vector<Located> list(const std::string& key, const std::string& alias = {}, char delimiter = ',') {
        std::vector<Located> top;
        std::vector<Located> middle;
        std::vector<Located> bottom;
        bool final = false;
        for (const auto& source : sources_) {
            const auto found = final ? std::nullopt : find(source, key, alias);
            if (!found) continue;
            std::vector<Located> own;
            for (const auto& item : items(source, found->second, key)) {
                const Located located{value(item), source.where(item)};
                const auto flag = source.flag(item);
                (flag == Flag::top ? top : flag == Flag::bottom ? bottom : own).push_back(located);
            }
            middle.insert(middle.begin(), own.begin(), own.end());
            final = source.flag(found->first) == Flag::final;
        }
        const auto name = variable_name(key);
        std::vector<Located> given;
        const auto listed = final ? std::string() : named_variable(environment_, name);
        for (const auto part : split(listed, delimiter))
            if (const auto text = trimmed(part); !text.empty())
                given.push_back({expand_variables(text, environment_), name});
        middle.insert(middle.begin(), given.begin(), given.end());

        std::vector<Located> result;
        std::set<std::string> seen;
        for (const auto* part : {&top, &middle, &bottom})
            for (const auto& item : *part)
                if (seen.insert(item.text).second) result.push_back(item);
        return result;
    }

    /// Merges the entries; later sources take precedence.
    std::map<std::string, std::string> map(const std::string& key) {
        std::map<std::string, std::string> result;
        each_entry(key, [&](const ConfigFile& source, const std::string& name, const YAML::Node& node) {
            if (node.IsScalar())
                result[name] = value(node);
            else if (!node.IsNull())
                refuse(source, node, fmt::format("{} in {} must be a single value", name, key));
        });
        return result;
    }

    std::map<std::string, std::vector<std::string>> map_of_lists(const std::string& key) {
        std::map<std::string, std::vector<std::string>> result;
        each_entry(key, [&](const ConfigFile& source, const std::string& name, const YAML::Node& node) {
            auto& list = result[name];
            list.clear();
            for (const auto& item : items(source, node, key))
                list.push_back(value(item));
        });
        return result;
    }

    std::optional<bool> boolean(const std::string& key, const std::string& alias = {}) {
        const auto given = scalar(key, alias);
        if (!given) return std::nullopt;
        if (const auto meant = as_boolean(given->text)) return meant;
        refuse(*given, key + " must be true or false");
        return std::nullopt;
    }

    std::optional<double> number(const std::string& key, double largest) {
        const auto given = scalar(key);
        if (!given) return std::nullopt;
        if (const auto meant = as_boolean(given->text);
            meant && !std::isdigit(static_cast<unsigned char>(given->text[0])))
            return *meant ? 1 : 0;
        const auto result = to_number<double>(given->text);
        if (result && *result >= 0 && *result <= largest) return result;
        refuse(*given, fmt::format("{} must be a number from 0 to {:.0f}", key, largest));
        return std::nullopt;
    }

    static std::optional<bool> as_boolean(std::string_view given) {
        const auto text = lower(given);
        if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
        if (text == "false" || text == "no" || text == "off" || text == "0") return false;
        return std::nullopt;
    }

    void refuse(const Located& given, std::string what) {
        note(std::move(what), fmt::format("it is '{}'", without_credentials(given.text)), given.where);
    }

    /// Explains why a key has no effect.
    void report_unknown() const {
        for (const auto& source : sources_)
            for (const auto& entry : source.yaml.root()) {
                if (!entry.first.IsScalar() || asked_.contains(entry.first.Scalar())) continue;
                const auto& key = entry.first.Scalar();
                if (matters(key))
                    warn_of(source.where(entry.first), key);
                else
                    log::detail(fmt::format("{}: `{}` is ignored", source.where(entry.first), key));
            }
        for (const auto key : not_supported)
            if (const auto name = variable_name(key); !named_variable(environment_, name).empty())
                warn_of(name, key);
    }

    [[nodiscard]] const Environment& environment() const { return environment_; }

    std::optional<Error> mistake;

private:
    using Entry = std::pair<YAML::Node, YAML::Node>;

    static bool matters(std::string_view key) {
        return std::ranges::find(not_supported, key) != not_supported.end();
    }

    static void warn_of(const std::string& where, std::string_view key) {
        log::warn(fmt::format("{}: `{}` is not supported and is ignored", where, key));
    }

    std::optional<Entry> find(const ConfigFile& source, const std::string& key, const std::string& alias) {
        asked_.insert(key);
        asked_.insert(alias);
        for (const auto& entry : source.yaml.root())
            if (entry.first.IsScalar() &&
                (entry.first.Scalar() == key || (!alias.empty() && entry.first.Scalar() == alias)))
                return Entry(entry.first, entry.second);
        return std::nullopt;
    }

    template<class Function>
    void each_entry(const std::string& key, const Function& function) {
        for (const auto& source : sources_) {
            const auto found = find(source, key, {});
            if (!found || found->second.IsNull()) continue;
            if (!found->second.IsMap()) {
                refuse(source, found->second, key + " must be a mapping of names to values");
                continue;
            }
            for (const auto& entry : found->second)
                if (entry.first.IsScalar()) function(source, value(entry.first), entry.second);
            if (source.flag(found->first) == Flag::final) return;
        }
    }

    /// Accepts a single value as a list of one, like mamba.
    std::vector<YAML::Node> items(const ConfigFile& source, const YAML::Node& node, const std::string& key) {
        if (node.IsNull()) return {};
        if (node.IsScalar()) return {node};
        std::vector<YAML::Node> result;
        if (!node.IsSequence()) {
            refuse(source, node, key + " must be a list");
            return result;
        }
        for (const auto& item : node) {
            if (item.IsScalar())
                result.push_back(item);
            else
                refuse(source, item, "an item of " + key + " must be a string");
        }
        return result;
    }

    [[nodiscard]] std::string value(const YAML::Node& node) const {
        return expand_variables(node.Scalar(), environment_);
    }

    void refuse(const ConfigFile& source, const YAML::Node& node, std::string what) {
        note(std::move(what), {}, source.where(node));
    }

    void note(std::string what, std::string why, std::string where) {
        if (mistake) return;
        mistake = fail_input(std::move(what), std::move(why), std::move(where),
                             "Correct it, or ignore conda's configuration with --no-config.")
                      .error();
    }

    static std::string variable_name(std::string_view key) { return "CONDA_" + upper(key); }

    const Environment& environment_;
    std::vector<ConfigFile> sources_;
    std::set<std::string> asked_;
};

std::vector<std::string> texts(const std::vector<Located>& list) {
    std::vector<std::string> result;
    std::ranges::transform(list, std::back_inserter(result), &Located::text);
    return result;
}

void read_channels(Reader& reader, Config& config) {
    config.channels = reader.list("channels", "channel");
    config.default_channels = reader.list("default_channels");
    if (const auto alias = reader.scalar("channel_alias")) {
        config.channel_alias = without_end_slash(alias->text);
        if (!is_url(config.channel_alias)) config.channel_alias = "https://" + config.channel_alias;
    }
    config.custom_channels = reader.map("custom_channels");
    config.custom_multichannels = reader.map_of_lists("custom_multichannels");
    config.mirrored_channels = reader.map_of_lists("mirrored_channels");
    config.allowed_channels = texts(reader.list("allowlist_channels", "whitelist_channels"));
    config.denied_channels = texts(reader.list("denylist_channels"));
    if (const auto priority = reader.scalar("channel_priority")) {
        const auto meant = Reader::as_boolean(priority->text);
        if (priority->text == "strict")
            config.channel_priority = ChannelPriority::strict;
        else if (priority->text == "flexible" || meant.value_or(false))
            config.channel_priority = ChannelPriority::flexible;
        else if (priority->text == "disabled" || meant)
            config.channel_priority = ChannelPriority::disabled;
        else
            reader.refuse(*priority, "channel_priority must be strict, flexible or disabled");
    }
}

/// A file or directory that must exist.
fs::path existing(Reader& reader, const Located& given, const std::string& key) {
    fs::path path = with_home(given.text, reader.environment());
    std::error_code ignored;
    if (!fs::exists(path, ignored)) reader.refuse(given, "the file that " + key + " names does not exist");
    return path;
}

void read_network(Reader& reader, Config& config) {
    auto& http = config.http;
    for (const auto& [scheme, proxy] : reader.map("proxy_servers"))
        if (!proxy.empty() && proxy != "none" && proxy != "None") http.proxies[scheme] = proxy;
    if (const auto verify = reader.scalar("ssl_verify", "verify_ssl")) {
        const auto meant = Reader::as_boolean(verify->text);
        http.verify_tls = meant.value_or(true);
        // "truststore" means the system's certificates, which we use by default.
        if (!meant && verify->text != "truststore" && verify->text != "<system>")
            http.ca = existing(reader, *verify, "ssl_verify");
    }
    if (const auto file = reader.scalar("client_ssl_cert", "client_cert"))
        http.client_certificate = existing(reader, *file, "client_ssl_cert");
    if (const auto file = reader.scalar("client_ssl_cert_key", "client_cert_key"))
        http.client_key = existing(reader, *file, "client_ssl_cert_key");
    constexpr double a_day = 86400;
    if (const auto seconds = reader.number("remote_read_timeout_secs", a_day))
        http.stall_timeout = std::chrono::seconds(std::max(1L, std::lround(*seconds)));
    if (const auto seconds = reader.number("remote_connect_timeout_secs", a_day))
        http.connect_timeout = std::chrono::milliseconds(std::max(1L, std::lround(*seconds * 1000)));
    if (const auto retries = reader.number("remote_max_retries", 100))
        http.retries = static_cast<unsigned>(*retries);
    if (const auto threads = reader.number("fetch_threads", 64); threads && *threads >= 1)
        http.parallel = static_cast<unsigned>(*threads);
    config.offline = reader.boolean("offline").value_or(false);
    config.use_shards = reader.boolean("repodata_use_shards").value_or(true);
    if (const auto ttl = reader.number("local_repodata_ttl", 10 * 365 * a_day))
        config.local_repodata_ttl = static_cast<int>(*ttl);
}

} // namespace

http::Settings default_http() {
    http::Settings settings;
    settings.advice = {
        .address = "the channel's name or URL",
        .login =
            "~/.netrc, ~/.mamba/auth/authentication.json, the token or password in the channel's URL, or for "
            "S3 AWS_ACCESS_KEY_ID.\n"
            "Some channels also require you to accept their terms of service first.",
        .proxy = "proxy_servers in .condarc, or https_proxy",
        .certificates = "`ssl_verify: /path/to/ca.pem` in .condarc, or with SSL_CERT_FILE",
        .client_certificate = "client_ssl_cert and client_ssl_cert_key in .condarc",
        .checksums = "their list (try again later)",
        .patience = "remote_read_timeout_secs in .condarc",
        .no_verification = "ssl_verify: false"};
    return settings;
}

void read_s3(const Environment& environment, Config& config) {
    const auto wrong = [&](std::string what, std::string why, std::string_view variable, std::string hint) {
        config.s3_problem = Error{.what = std::move(what),
                                  .why = std::move(why),
                                  .where = std::string(variable),
                                  .hint = std::move(hint),
                                  .fault = Fault::input};
    };
    // The name and the value of the first variable that is set.
    const auto first_of = [&](VariableList names) {
        for (const auto name : names)
            if (auto value = variable(environment, name); !value.empty())
                return std::pair(std::string_view(name.name()), std::move(value));
        return std::pair(std::string_view(), std::string());
    };
    auto [region_name, region] = first_of({"AWS_REGION", "AWS_DEFAULT_REGION"});
    if (region.empty()) region = "us-east-1";
    constexpr std::string_view of_regions = "abcdefghijklmnopqrstuvwxyz0123456789-";
    if (region.find_first_not_of(of_regions) != region.npos)
        return wrong("invalid region for S3", {}, region_name, "Set it to a name such as eu-north-1.");
    config.s3_server = "https://s3." + region + ".amazonaws.com";
    if (const auto [name, server] = first_of({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}); !server.empty()) {
        if (url_host(server).empty() || !server.starts_with("http") || without_credentials(server) != server)
            return wrong("invalid server for S3", "it must be an http or https URL without a login", name,
                         "Set it to a URL such as https://s3.example.org.");
        config.s3_server = without_end_slash(server);
    }
    const auto key = variable(environment, "AWS_ACCESS_KEY_ID");
    const auto secret = variable(environment, "AWS_SECRET_ACCESS_KEY");
    if (key.empty() != secret.empty())
        return wrong("requests to S3 cannot be signed", "this variable is not set",
                     key.empty() ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                     "Set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or for a public bucket none.");
    if (!key.empty())
        config.http.logins.push_back({.url = config.s3_server,
                                      .user = key,
                                      .password = secret,
                                      .signature = "aws:amz:" + region + ":s3",
                                      .session = variable(environment, "AWS_SESSION_TOKEN")});
}

Result<Config> read_config(const Environment& environment, const fs::path& root) {
    Config config;
    std::vector<ConfigFile> sources;
    const auto read = [&](const std::vector<fs::path>& files) -> Status {
        for (const auto& file : files) {
            if (std::ranges::find(config.files, file) != config.files.end()) continue;
            auto source = TRY(read_source(file));
            if (!source) continue;
            config.files.push_back(file);
            sources.push_back(std::move(*source));
        }
        return {};
    };
    TRY(read(site_files(root)));
    // The site's own settings, without files and variables of the user.
    const Environment none;
    Reader site(none, sources);
    for (const char* key : {"channels", "default_channels"})
        for (auto& channel : site.list(key))
            config.site_channels.push_back(std::move(channel));
    TRY(read(user_files(environment)));

    Reader reader(environment, std::move(sources));
    read_channels(reader, config);
    read_network(reader, config);
    config.pinned_packages = reader.list("pinned_packages", {}, '&');
    config.disallowed_packages = reader.list("disallowed_packages", "disallow", '&');
    config.default_packages = reader.list("create_default_packages");
    config.pip_with_python = reader.boolean("add_pip_as_python_dependency").value_or(true);
    for (const auto& directory : reader.list("pkgs_dirs"))
        if (const fs::path path = with_home(directory.text, environment); path.is_absolute())
            config.pkgs_dirs.push_back(path);
    const bool add_tokens = reader.boolean("add_anaconda_token", "add_binstar_token").value_or(true);
    if (reader.mistake) return fail(std::move(*reader.mistake));
    reader.report_unknown();
    TRY(read_logins(environment, add_tokens, config));
    return config;
}

} // namespace containerize::conda
