// The environment variables that containerize reads, or sets for other programs, and their documentation.
// Reading any other variable does not compile. Launchers use this, so nothing here has a cost at run time.
#pragma once

#include <array>
#include <initializer_list>
#include <string_view>

namespace containerize {

/// A row of the table. One without a description is the title of those below it.
struct VariableInfo {
    std::string_view names; ///< separated by spaces; "*" stands for any characters
    std::string_view description = {};
};

inline constexpr auto variable_table = std::to_array<VariableInfo>({
    {"Builds"},
    {"CONTAINERIZE_CONFIG", "A configuration file. It is read after the machine's and before the user's."},
    {"CONTAINERIZE_CACHE",
     "Directory for downloaded packages and package lists, instead of `containerize` in "
     "`$XDG_CACHE_HOME` or `~/.cache`."},
    {"CONTAINERIZE_BASES",
     "Directory for base images, instead of `containerize/bases` in `$XDG_DATA_HOME` or "
     "`~/.local/share`."},
    {"SOURCE_DATE_EPOCH", "Seconds since 1970: the time of the files in the image, for reproducible images."},

    {"Launches"},
    {"CONTAINERIZE_ENGINE",
     "What runs the programs: `auto`, `native`, `apptainer` or `singularity`. Default: "
     "what the installation records."},
    {"CONTAINERIZE_BIND", "Further files and directories of the host to show: `SRC[:DST[:OPTIONS]]`, several "
                          "separated by commas. OPTIONS are `ro`, `rw` and `required`."},
    {"CONTAINERIZE_GPU",
     "The vendor of the GPU drivers that a base image gets: `auto`, `nvidia`, `amd`, `intel` or `none`. "
     "Default: what the installation records."},
    {"CONTAINERIZE_PREFETCH",
     "How a session reads images ahead: `auto`, `on`, `off`, or with size and number of "
     "requests, such as `auto:4M:8`. Default: what the installation records."},
    {"CONTAINERIZE_STAGE", "Whether a session first copies the images to its node: `auto`, `local`, `ram` or "
                           "`off`. Default: what the installation records."},
    {"CONTAINERIZE_SESSION_IDLE",
     "A session ends after this number of seconds without a program. Default: 600."},
    {"NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES CUDA_MPS_PIPE_DIRECTORY",
     "Which NVIDIA devices and parts of the driver a base image gets, and where MPS listens."},
    {"APPTAINER_BIND APPTAINER_BINDPATH SINGULARITY_BIND SINGULARITY_BINDPATH",
     "Further binds, like `CONTAINERIZE_BIND`, if the installation has a base image."},

    {"Jobs"},
    {"CONTAINERIZE_SITE", "The site profile: a name or a file. Default: the detected one."},
    {"MASTER_ADDR MASTER_PORT RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK",
     "The ranks of a parallel program, as PyTorch reads them. `containerize-rank` sets those that are not "
     "set."},
    {"SLURM_JOB_ID SLURM_JOB_NODELIST SLURM_STEP_ID SLURM_STEP_NODELIST SLURM_STEP_TASKS_PER_NODE "
     "SLURM_PROCID "
     "SLURM_LOCALID SLURM_NODEID SLURM_NTASKS SLURM_GPUS_ON_NODE SLURM_RESTART_COUNT SLURMD_NODENAME",
     "Slurm's description of the job, the step and the task."},
    {"PBS_JOBID LSB_JOBID LSB_JOBINDEX JOB_ID SGE_TASK_ID FLUX_JOB_ID OAR_JOB_ID PJM_JOBID PJM_BULKNUM "
     "_CONDOR_SCRATCH_DIR",
     "The job, in PBS, LSF, Grid Engine, Flux, OAR, PJM and HTCondor."},
    {"OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_LOCAL_SIZE "
     "PMI_RANK "
     "PMI_SIZE MPI_LOCALRANKID MPI_LOCALNRANKS PALS_RANKID PALS_LOCAL_RANKID PALS_LOCAL_SIZE PALS_NODEID",
     "The rank, in Open MPI, Intel MPI and MPICH."},

    {"Shell functions"},
    {"CONTAINERIZE_PATH TYKKY_PATH",
     "Directories in which `containerize activate NAME` looks for installations, "
     "separated by colons. Default: `~/.containerize` and `~/.tykky`."},
    {"CONTAINERIZE_CHANGE_PS1 TYKKY_CHANGE_PS1", "`0`: do not show the active installation in the prompt."},
    {"CONTAINERIZE_ROOT", "Where containerize is installed, for shells that cannot find out (dash, mksh)."},
    {"CONTAINERIZE_ACTIVE TYKKY_PREFIX", "Set by `containerize activate`: the active installation."},

    {"Set for programs"},
    {"CONTAINERIZE_PREFIX", "The installation that a program runs from. Commands without a DIR use it."},
    {"CONTAINERIZE_IMAGE CONTAINERIZE_RUNSCRIPTS",
     "Set by module files: the image, and the directory of commands."},
    {"VIRTUAL_ENV", "The installation, as for a venv. It is not changed if another venv is active."},
    {"CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_SHLVL", "The installation, as for an active conda environment."},
    {"env_root install_root CW_INSTALLATION_PATH CW_INSTALLATION_PREFIX CW_WORKDIR CW_NUM_CPUS CW_MODE",
     "Set for scripts of a build, as by tykky."},

    {"Names of tykky"},
    {"CW_GLOBAL_YAML", "tykky's configuration file, read after all others."},
    {"CW_BUILD_TMPDIR", "Where to build. tykky's commands read it; scripts of a build get it."},
    {"CW_DEBUG_KEEP_FILES", "If set, tykky's commands keep the files of a failed build and name their path."},
    {"CW_LOG_LEVEL",
     "What tykky's commands print: 0 errors, 1 warnings, 2 progress, 3 everything. Default: 2."},
    {"CW_ENABLE_CONDARC", "If set, tykky's commands read `.condarc` files and `CONDA_` variables."},
    {"CW_NO_CONDA_ACTIVATE CW_FORCE_CONDA_ACTIVATE",
     "If the first is set, a launch never activates the environment. If the second is set, it always does."},
    {"CW_EXTRA_BIND_MOUNTS", "Further binds at a launch, like `CONTAINERIZE_BIND`."},
    {"CW_NO_FIX_PERM", "Has no effect: everybody who can read an installation can read its images."},

    {"Downloads and logins"},
    {"http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY", "The proxy for downloads."},
    {"REQUESTS_CA_BUNDLE CURL_CA_BUNDLE SSL_CERT_FILE SSL_CERT_DIR",
     "The certificates to trust; the first that "
     "exists is used."},
    {"NETRC", "A file with logins, instead of `~/.netrc`."},
    {"RATTLER_AUTH_FILE", "Logins for conda channels, as stored by pixi and rattler."},
    {"AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN",
     "The credentials for conda channels in buckets of S3 (`s3://BUCKET/PATH`)."},
    {"AWS_ENDPOINT_URL_S3 AWS_ENDPOINT_URL AWS_REGION AWS_DEFAULT_REGION",
     "The server of these buckets and its region. Default: Amazon's in us-east-1."},
    {"REGISTRY_AUTH_FILE DOCKER_CONFIG",
     "Logins for registries: a file, and the directory of Docker's `config.json`."},
    {"KRB5CCNAME", "Where Kerberos tickets are, for `containerize doctor`."},

    {"conda and pip"},
    {"CONDA_OVERRIDE_*", "The version of a virtual package, such as `CONDA_OVERRIDE_CUDA=12.4`."},
    {"CONDA_*", "Settings of conda, as in `.condarc`, such as `CONDA_CHANNELS`. `--no-config` ignores them."},
    {"CONDARC MAMBARC CONDA_EXE CONDA_ROOT MAMBA_ROOT_PREFIX", "Where further configuration of conda is."},
    {"PIP_CONFIG_FILE UV_CONFIG_FILE GIT_CONFIG_GLOBAL",
     "Configuration of pip, uv and git. Passwords and tokens in these files are removed from messages."},
    {"GIT_CONFIG_COUNT", "Settings of git, to which the build adds logins."},
    {"PIP_* UV_*", "pip and uv read their own variables."},

    {"Programs and directories"},
    {"PATH", "Where programs such as `python3`, `uv`, `apptainer` and `srun` are looked for."},
    {"HOME XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME", "The user's files."},
    {"XDG_RUNTIME_DIR", "A private directory on the node, for the state of sessions and Podman's logins."},
    {"TMPDIR",
     "A directory on the node: for builds, copies of images, and the state of sessions. Default: `/tmp`."},
    {"USER LOGNAME SHELL TERM", "The user, the shell and the terminal."},
    {"JUPYTER_DATA_DIR", "Where `containerize kernel` puts kernels, instead of `~/.local/share/jupyter`."},
    {"LD_LIBRARY_PATH APPTAINER_TMPDIR APPTAINER_CACHEDIR APPTAINER_CONFIGDIR APPTAINER_CONFIG_FILE "
     "SINGULARITY_TMPDIR SINGULARITY_CACHEDIR SINGULARITY_CONFIGDIR SINGULARITY_CONFIG_FILE",
     "Passed on to the container runtime, if one runs the programs."},

    {"For tests and between parts of containerize"},
    {"CONTAINERIZE_DEBUG_READ_DELAY", "Microseconds that a session waits before it reads from an image."},
    {"CONTAINERIZE_RECORD CONTAINERIZE_CALL CONTAINERIZE_GIT_*",
     "Set by containerize for its own processes."},
});

/// The name of a variable in the table.
class Variable {
public:
    constexpr Variable() = default; ///< none
    // NOLINTNEXTLINE(google-explicit-constructor): a literal is enough where a variable is read
    consteval Variable(const char* name) : name_(name) {
        if (!is_in_table(name)) the_variable_is_not_in_the_table();
    }
    [[nodiscard]] constexpr const char* name() const { return name_; } ///< null if there is none
    constexpr explicit operator bool() const { return name_ != nullptr; }

private:
    static void the_variable_is_not_in_the_table(); ///< no definition: what the compiler says names it
    static consteval bool is_in_table(std::string_view name) {
        for (const auto& row : variable_table) {
            if (row.description.empty()) continue;
            auto rest = row.names;
            for (auto space = rest.find(' '); space != rest.npos; space = rest.find(' ')) {
                if (rest.substr(0, space) == name) return true;
                rest.remove_prefix(space + 1);
            }
            if (rest == name) return true;
        }
        return false;
    }

    const char* name_ = nullptr;
};

using VariableList = std::initializer_list<Variable>;

} // namespace containerize
