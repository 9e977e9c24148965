#include "config/key.h"

#include "config/expand.h"
#include "core/text.h"
#include "core/url.h"
#include "image/writer.h"
#include "launch/engine.h"
#include "manifest/bind.h"
#include "manifest/launch_settings.h"
#include "pip/installer.h"
#include "pip/python_choice.h"

#include <algorithm>
#include <filesystem>
#include <limits>

namespace containerize::config {

namespace {

/// Accepts what `parse` accepts.
template<auto parse>
Status check_by(const std::string& value) {
    TRY(parse(value));
    return {};
}

Status check_directory(const std::string& value) {
    if (!value.starts_with('/') && !value.starts_with('$') && value != "~" && !value.starts_with("~/"))
        return fail_input("not an absolute path: '" + value + "'", {}, {},
                          "Start it with '/', '~/' or a variable.");
    TRY(expand(value, [](const std::string&) { return std::string(); }));
    return {};
}

Status check_channel(const std::string& value) {
    if (!value.empty() && value.find_first_of(" \t\n") == std::string::npos && !value.starts_with('.'))
        return {};
    return fail_input("invalid channel: '" + value + "'", {}, {}, "Give a name, a URL or an absolute path.");
}

Status check_mirror(const std::string& value) {
    if (parse_mirror(value)) return {};
    return fail_input("invalid mirror: '" + without_credentials_within(value) + "'",
                      "both parts must be http or https addresses", {},
                      "Give PREFIX=URL, such as "
                      "https://conda.anaconda.org/bioconda=https://mirror.example.org/bioconda. For logins, "
                      "use ~/.netrc.");
}

Status check_flag(const std::string& value) {
    if (parse_flag(value)) return {};
    return fail_input("not true or false: '" + value + "'");
}

Status check_base(const std::string& value) {
    if (!value.empty() && value.find_first_of(" \t\n") == std::string::npos) return {};
    return fail_input("invalid base: '" + value + "'", {}, {},
                      "Give host, an image such as docker://debian:12, or a file.");
}

Status check_number(const std::string& value) {
    if (const auto number = to_number<unsigned>(value).value_or(0); number >= 1 && number <= 1024) return {};
    return fail_input("not a number from 1 to 1024: '" + value + "'");
}

Status check_wrapper_path(const std::string& value) {
    const auto path = std::filesystem::path(value).lexically_normal();
    if (!path.empty() && path.is_relative() && path != "." && *path.begin() != "..") return {};
    return fail_input("not a path below the prefix: '" + value + "'", {}, {},
                      "Give it relative to the prefix, such as opt/tool/bin.");
}

// NAME=URL
Status check_registry(const std::string& value) {
    const auto equals = value.find('=');
    const auto url = equals == std::string::npos ? "" : value.substr(equals + 1);
    if (equals != 0 && equals != std::string::npos &&
        value.substr(0, equals).find('/') == std::string::npos &&
        (url.starts_with("https://") || url.starts_with("http://")) && !url_host(url).empty() &&
        url.find_first_of(" \t?#@") == std::string::npos)
        return {};
    return fail_input("invalid registry mirror: '" + without_credentials(value) + "'", {}, {},
                      "Give NAME=URL, such as docker.io=https://mirror.example.org.");
}

Status check_host_profile(const std::string& value) {
    const bool is_name = !value.empty() && value.find_first_not_of(
                                               "abcdefghijklmnopqrstuvwxyz0123456789-_") == std::string::npos;
    if (is_name || value.starts_with('/')) return {};
    return fail_input("invalid host profile: '" + value + "'", {}, {},
                      "Give a name, such as slurm, or the absolute path of a file.");
}

Status check_variable(const std::string& value) {
    if (value.find('\0') == std::string::npos) return {};
    return fail_input("the variable's value contains a NUL character");
}

Status check_umask(const std::string& value) {
    if (parse_umask(value)) return {};
    return fail_input("invalid umask: '" + value + "'", {}, {},
                      "Give an octal mask that keeps the owner's permissions, such as \"027\".");
}

} // namespace

const std::array<KeyInfo, number_of_keys>& all_keys() {
    static const std::array<KeyInfo, number_of_keys> keys = {{
        {.key = Key::prefix,
         .name = "prefix",
         .kind = Kind::directory,
         .check = check_directory,
         .otherwise = "none, it must be given",
         .option = "--prefix",
         .description = "Directory of the installation. It must be empty, or must not exist"},
        {.key = Key::channels,
         .name = "channels",
         .kind = Kind::list,
         .check = check_channel,
         .otherwise = "those of `.condarc`, else conda-forge",
         .description = "conda channels for environment files that name none. The section `defaults` applies "
                        "only if `.condarc` has no `channels`. The section `force` replaces all others. "
                        "Channels in `prepends` and `appends` are placed before and after the result"},
        {.key = Key::mirrors,
         .name = "mirrors",
         .kind = Kind::list,
         .check = check_mirror,
         .otherwise = "none",
         .description =
             "`PREFIX=URL`: the address from which to fetch what a conda channel has below the prefix, such "
             "as `https://conda.anaconda.org=https://mirror.example.org/conda`. Several for one prefix are "
             "tried in turn, then the channel itself. The longest prefix counts"},
        {.key = Key::conda_config,
         .name = "conda_config",
         .kind = Kind::flag,
         .check = check_flag,
         .standard = "true",
         .option = "--no-config",
         .description = "Whether `.condarc` files and `CONDA_` variables are used"},
        {.key = Key::cache,
         .name = "cache",
         .kind = Kind::directory,
         .check = check_directory,
         .otherwise = "~/.cache/containerize",
         .variable = "CONTAINERIZE_CACHE",
         .description = "Directory for packages, downloaded and packed, and package lists. It is created if "
                        "it is missing"},
        {.key = Key::cache_limit,
         .name = "cache_limit",
         .kind = Kind::text,
         .check = check_by<parse_limit>,
         .standard = "none",
         .choices = "none,...",
         .description =
             "Limit for the total size of your packages in the cache, downloaded and packed, such "
             "as `50G`, or `none`. Above it, the least recently used ones are removed after a build"},
        {.key = Key::cache_age,
         .name = "cache_age",
         .kind = Kind::text,
         .check = check_by<parse_age>,
         .standard = "90d",
         .choices = "90d,none,...",
         .description = "Time without use after which your packages in the cache are removed: a number of "
                        "days, such as `90d`, or `none`"},
        {.key = Key::site_caches,
         .name = "site_caches",
         .kind = Kind::list,
         .check = check_directory,
         .otherwise = "none",
         .description = "Caches that a site has filled with packed packages. They are searched after the "
                        "user's own cache, and never written to"},
        {.key = Key::exec_environments,
         .name = "exec_environments",
         .kind = Kind::directory,
         .check = check_directory,
         .otherwise = "`exec/UID` in the cache",
         .description =
             "Directory in which `containerize exec` keeps your environments. Only you may have access "
             "to it. It is created if it is missing"},
        {.key = Key::exec_limit,
         .name = "exec_limit",
         .kind = Kind::text,
         .check = check_by<parse_size>,
         .standard = "10G",
         .choices = "10G,...",
         .description =
             "Limit for the total size of these environments, such as `500M` or `10G`. Above it, the "
             "least recently used ones are removed"},
        {.key = Key::staging,
         .name = "staging",
         .kind = Kind::directory,
         .check = check_directory,
         .otherwise = "$TMPDIR or /tmp",
         .option = "--tmpdir",
         .description = "Directory to build in, on a disk of the node"},
        {.key = Key::base,
         .name = "base",
         .kind = Kind::text,
         .check = check_base,
         .standard = "host",
         .option = "--base",
         .choices = "host,auto,...",
         .description =
             "Root filesystem that programs see: `host`, `auto` (the host if its C library is new "
             "enough, else `auto_base` of the configuration), `docker://IMAGE`, `oci:DIR`, a .sif or .sqfs "
             "file, or a directory"},
        {.key = Key::auto_base,
         .name = "auto_base",
         .kind = Kind::text,
         .check = check_base,
         .otherwise = "none",
         .description = "The image that `base: auto` selects if the host's C library is older than 2.28"},
        {.key = Key::bases,
         .name = "bases",
         .kind = Kind::directory,
         .check = check_directory,
         .otherwise = "~/.local/share/containerize/bases",
         .variable = "CONTAINERIZE_BASES",
         .description = "Directory for base images. All nodes must see it. It is created if it is missing"},
        {.key = Key::base_stores,
         .name = "base_stores",
         .kind = Kind::list,
         .check = check_directory,
         .otherwise = "none",
         .description =
             "Directories with a site's base images. They are searched first, and never written to"},
        {.key = Key::base_limit,
         .name = "base_limit",
         .kind = Kind::number,
         .check = check_number,
         .standard = "256",
         .description = "Limit in GiB for the total size of a base image's unpacked layers"},
        {.key = Key::registries,
         .name = "registries",
         .kind = Kind::list,
         .check = check_registry,
         .otherwise = "none",
         .description =
             "`NAME=URL`: the address to use for a registry, such as `docker.io=https://mirror.example.org`. "
             "Several are tried in turn, then the registry itself. `NAME=http://NAME` permits plain http"},
        {.key = Key::compression,
         .name = "compression",
         .kind = Kind::text,
         .check = check_by<image::parse_compression>,
         .standard = "zstd:3",
         .option = "--compression",
         .choices = "zstd:3,lz4,none,...",
         .description = "Compression of images: `zstd:LEVEL` (1 to 22), `lz4` or `none`"},
        {.key = Key::block_size,
         .name = "block_size",
         .kind = Kind::text,
         .check = check_by<image::parse_block_size>,
         .standard = "128K",
         .option = "--block-size",
         .description = "Block size of images: a power of two from 4K to 1M"},
        {.key = Key::jobs,
         .name = "jobs",
         .kind = Kind::number,
         .check = check_number,
         .otherwise = "as many as CPUs and memory allow, at most 8 outside a job",
         .option = "--jobs",
         .description = "Number of parallel workers"},
        {.key = Key::max_jobs,
         .name = "max_jobs",
         .kind = Kind::number,
         .check = check_number,
         .otherwise = "no limit",
         .description = "Upper limit for the number of workers, even if more are requested"},
        {.key = Key::python,
         .name = "python",
         .kind = Kind::text,
         .check = check_by<pip::check_default_python>,
         .otherwise = "`python3` on `PATH`, else conda's",
         .option = "--python",
         .choices = "conda,...",
         .description =
             "Python of pip environments: a version (`3.12`), a path, or `conda` or `conda:3.12` for "
             "conda's. The setting of a configuration applies only without a base image"},
        {.key = Key::installer,
         .name = "installer",
         .kind = Kind::text,
         .check = check_by<pip::parse_installer>,
         .standard = "auto",
         .option = "--installer",
         .choices = "auto,pip,uv,pip-tree",
         .description = "What chooses and installs pip packages. `auto` is uv if it is on `PATH`; else pip, "
                        "where a downloaded uv chooses packages of PyPI. With `pip-tree`, pip installs into "
                        "a directory, and no package images are used"},
        {.key = Key::wrapper_paths,
         .name = "wrapper_paths",
         .kind = Kind::list,
         .check = check_wrapper_path,
         .otherwise = "none",
         .option = "--wrapper-paths",
         .description = "Further directories below the installation whose commands get wrappers. A directory "
                        "that an environment lacks is skipped. Updates keep the installation's list"},
        {.key = Key::binds,
         .name = "binds",
         .kind = Kind::list,
         .check = check_by<manifest::parse_bind>,
         .otherwise = "none",
         .option = "--bind",
         .description = "`SRC[:DST[:OPTIONS]]`, with the options `ro`, `rw` and `required`: files and "
                        "directories of the host that programs see. `--bind` adds to the list"},
        {.key = Key::host_profiles,
         .name = "host_profiles",
         .kind = Kind::list,
         .check = check_host_profile,
         .otherwise = "none",
         .option = "--host-profile",
         .description =
             "Profiles that list the files of the host that installations with a base image need: `slurm`, "
             "`infiniband`, `slingshot` or absolute paths. `--host-profile` adds to the list"},
        {.key = Key::engine,
         .name = "engine",
         .kind = Kind::text,
         .check = check_by<launch::parse_engine>,
         .standard = "auto",
         .option = "--engine",
         .variable = "CONTAINERIZE_ENGINE",
         .choices = "auto,native,apptainer,singularity",
         .description = "What runs the programs. `auto` is native if users may create namespaces, else "
                        "apptainer or singularity"},
        {.key = Key::prefetch,
         .name = "prefetch",
         .kind = Kind::text,
         .check = check_by<manifest::parse_prefetch>,
         .standard = "auto",
         .variable = "CONTAINERIZE_PREFETCH",
         .choices = "auto,on,off,...",
         .description = "Whether images are read ahead: `auto` (on network filesystems), `on`, `off`, or "
                        "with size and number of requests, such as `auto:4M:8`"},
        {.key = Key::stage,
         .name = "stage",
         .kind = Kind::text,
         .check = check_by<manifest::parse_stage_place>,
         .standard = "auto",
         .option = "--stage",
         .variable = "CONTAINERIZE_STAGE",
         .choices = "auto,local,ram,off",
         .description = "Whether sessions first copy the images to a disk (`local`) or the memory (`ram`) of "
                        "their node. `auto` uses only copies that `containerize stage` made"},
        {.key = Key::kernel_mount,
         .name = "kernel_mount",
         .kind = Kind::flag,
         .check = check_flag,
         .standard = "false",
         .description = "Whether the kernel mounts the images of root's new installations"},
        {.key = Key::environment,
         .name = "environment",
         .kind = Kind::map,
         .check = check_variable,
         .otherwise = "none",
         .option = "--environ",
         .description =
             "Variables that are set at every launch of an installation. `${prefix}` in a value is the "
             "installation's path. A script given with `--environ` overrides values from `defaults`"},
        {.key = Key::umask,
         .name = "umask",
         .kind = Kind::text,
         .check = check_umask,
         .otherwise = "the shell's",
         .description = "Who may read an installation, in octal, such as `\"027\"`. It must not take "
                        "permissions from the owner. Users other than the owner and the group never get "
                        "write access"},
    }};
    return keys;
}

const KeyInfo& info(Key key) {
    return all_keys().at(static_cast<std::size_t>(key));
}

const KeyInfo* find_key(std::string_view name) {
    const auto found = std::ranges::find(all_keys(), name, &KeyInfo::name);
    return found == all_keys().end() ? nullptr : &*found;
}

std::optional<bool> parse_flag(std::string_view text) {
    const auto word = lower(text);
    if (word == "true" || word == "yes" || word == "on") return true;
    if (word == "false" || word == "no" || word == "off") return false;
    return std::nullopt;
}

Result<std::uint64_t> parse_size(std::string_view text) {
    constexpr std::string_view units = "KMGT";
    const auto unit = text.empty() ? units.npos : units.find(text.back());
    const auto number = to_number<std::uint64_t>(text.substr(0, text.size() - (unit == units.npos ? 0 : 1)));
    const auto shift = unit == units.npos ? 0 : 10 * (unit + 1);
    if (number && *number <= std::numeric_limits<std::uint64_t>::max() >> shift) return *number << shift;
    return fail_input("invalid size: '" + std::string(text) + "'", {}, {},
                      "Give a number of bytes, with K, M, G or T for larger units, such as 10G.");
}

Result<std::optional<std::uint64_t>> parse_limit(std::string_view text) {
    if (text == "none") return std::nullopt;
    return TRY(parse_size(text));
}

Result<std::optional<std::chrono::days>> parse_age(std::string_view text) {
    if (text == "none") return std::nullopt;
    const auto number =
        text.ends_with('d') ? to_number<unsigned>(text.substr(0, text.size() - 1)) : std::nullopt;
    if (number && *number >= 1 && *number <= 36500) return std::chrono::days(*number);
    return fail_input("invalid age: '" + std::string(text) + "'", {}, {},
                      "Give a number of days, such as 90d, or none.");
}

std::optional<std::pair<std::string, std::string>> parse_mirror(std::string_view text) {
    const auto is_address = [](std::string_view url) {
        return (url.starts_with("https://") || url.starts_with("http://")) && !url_host(url).empty() &&
               url.find_first_of(" \t?#@=") == url.npos;
    };
    const auto equals = std::min(text.find('='), text.size());
    const auto prefix = text.substr(0, equals);
    const auto url = text.substr(std::min(equals + 1, text.size()));
    if (!is_address(prefix) || !is_address(url)) return std::nullopt;
    return std::pair(std::string(without_end_slash(prefix)), std::string(without_end_slash(url)));
}

std::optional<unsigned> parse_umask(std::string_view text) {
    constexpr int octal = 8;
    const auto bits = to_number<unsigned>(text, octal);
    return bits && *bits <= 077 ? bits : std::nullopt;
}

} // namespace containerize::config
