// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <verbena/soft/layout.hpp>
#include <verbena/soft/undo.hpp>
#include <verbena/verbs/result.hpp>

namespace verbena::soft {

/// The file of a fabric's segment in shared memory: finding, making, locking and removing it. Its
/// lock is held by who joins, leaves or reclaims, and given back by a dying process.
class segment_file {
 public:
  segment_file() = default;
  ~segment_file() {
    if (segment_ != nullptr) ::munmap(segment_, sizeof(segment));
    if (file_ >= 0) ::close(file_);
  }
  segment_file(const segment_file&) = delete;
  segment_file& operator=(const segment_file&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::uint64_t identity() const noexcept { return identity_; }
  segment* mapped() const noexcept { return segment_; }

  /// Unlocks at its end.
  struct unlock {
    int file;
    explicit unlock(const segment_file& of) noexcept : file{of.file_} {}
    ~unlock() { ::flock(file, LOCK_UN); }
    unlock(const unlock&) = delete;
    unlock& operator=(const unlock&) = delete;
  };

  bool lock() const noexcept {
    for (int tries = 0; tries < 2000; ++tries) {
      if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return false;
  }

  /// Opens the file at `path`, made if need be, and locks it; again when it was removed in between.
  /// Errors: errno, EACCES where it is not this user's alone, ETIMEDOUT.
  result<void> open(std::string path) {
    path_ = std::move(path);
    for (int tries = 0; tries < 100; ++tries) {
      file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
      if (file_ < 0) {
        const int number = errno;
        struct stat found{};
        const bool is_there = ::lstat(path_.c_str(), &found) == 0;
        if (number == EMFILE || number == ENFILE)
          return system_failure(number, "cannot open the fabric " + path_);
        return is_there ? belongs_elsewhere(found, number)
                        : system_failure(number, "cannot make the fabric " + path_);
      }
      struct stat mine{};
      if (::fstat(file_, &mine) != 0)
        return system_failure(errno, "cannot look at the fabric " + path_);
      if (!S_ISREG(mine.st_mode) || mine.st_uid != ::geteuid() || (mine.st_mode & 077) != 0)
        return belongs_elsewhere(mine, EACCES);
      if (!lock())
        return system_failure(
            ETIMEDOUT, "the fabric " + path_ + " is locked by a process that does not go on");
      struct stat now{};
      if (::stat(path_.c_str(), &now) == 0 && now.st_ino == mine.st_ino &&
          now.st_dev == mine.st_dev) {
        identity_ = mine.st_ino;
        return success();
      }
      ::close(std::exchange(file_, -1));
    }
    return system_failure(EAGAIN, "the fabric " + path_ + " keeps being removed");
  }

  /// Maps it, made anew where there is nothing in it yet, or nobody is on it and it is of another
  /// version. Under the lock. Errors: errc::mismatch (also where those on it are of another PID
  /// namespace), errc::capacity without room for it, errno.
  result<void> map() {
    struct stat found{};
    if (::fstat(file_, &found) != 0)
      return system_failure(errno, "cannot look at the fabric " + path_);
    const std::uint64_t magic = word<std::uint64_t>(offsetof(segment, magic));
    const std::uint32_t version = word<std::uint32_t>(offsetof(segment, version));
    const std::uint32_t size = word<std::uint32_t>(offsetof(segment, size));
    const bool fits = magic == segment_magic && version == segment_version &&
                      size == sizeof(segment) &&
                      found.st_size == static_cast<off_t>(sizeof(segment));
    if (!fits) {
      if (!alone()) return other_version(magic, version, size);
      if (auto made = make_anew(); !made) {
        remove();
        return made;
      }
    }
    void* base = ::mmap(nullptr, sizeof(segment), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (base == MAP_FAILED) {
      const int number = errno;
      if (alone()) remove();
      return system_failure(number, "cannot map the fabric " + path_ + " of " +
                                        std::to_string(sizeof(segment)) + " bytes");
    }
    segment_ = static_cast<segment*>(base);
    if (alone()) segment_->pid_namespace = pid_namespace();
    if (segment_->pid_namespace != pid_namespace()) return other_namespace();
    if (!fits) {
      // So that a number of another fabric, or of one before it, leads nowhere here.
      std::uint32_t anywhere = 0;
      (void)!::getrandom(&anywhere, sizeof anywhere, GRND_NONBLOCK);
      segment_->next_generation = anywhere;
      segment_->version = segment_version;
      segment_->size = sizeof(segment);
      segment_->magic = segment_magic;
    }
    return success();
  }

  /// Whether no other process is on the fabric, of whatever version: each holds a shared lock on
  /// the file's first byte as long as it lives.
  bool alone() const noexcept {
    struct flock asked{};
    asked.l_type = F_WRLCK;
    asked.l_whence = SEEK_SET;
    asked.l_len = 1;
    return ::fcntl(file_, F_OFD_GETLK, &asked) == 0 && asked.l_type == F_UNLCK;
  }

  bool mark_presence(short how) const noexcept {
    struct flock here{};
    here.l_type = how;
    here.l_whence = SEEK_SET;
    here.l_len = 1;
    return ::fcntl(file_, F_OFD_SETLK, &here) == 0;
  }

  /// Removes the segment and the memory of its processes. For the last who is on it.
  void remove() const noexcept {
    remove_memory();
    ::unlink(path_.c_str());
  }

  /// Memory of `length` bytes in a file of its own, mapped. Errors: errc::capacity with what is
  /// left of the system's shared memory or allowed to this process, errno; no file is left then.
  result<std::byte*> make_memory(const std::string& name, std::size_t length) const {
    const std::string what = "the shared memory " + name;
    ::unlink(name.c_str());
    const int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return system_failure(errno, "cannot make " + what);
    const undo close{[&] { ::close(file); }};
    undo remove_file{[&] { ::unlink(name.c_str()); }};
    BOOST_OUTCOME_TRY(fill(file, length, what));
    void* base = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (base == MAP_FAILED) {
      return system_failure(errno,
                            "cannot map " + what + " of " + std::to_string(length) + " bytes");
    }
    remove_file.keep();
    return static_cast<std::byte*>(base);
  }

 private:
  template <class Word>
  Word word(std::size_t at) const noexcept {
    Word found{};
    const ssize_t got = ::pread(file_, &found, sizeof found, static_cast<off_t>(at));
    return got == static_cast<ssize_t>(sizeof found) ? found : Word{};
  }

  error belongs_elsewhere(const struct stat& found, int number) const {
    if (!S_ISREG(found.st_mode))
      return system_failure(number, "the fabric's name " + path_ + " is taken by no regular file");
    const auto octal = [](unsigned mode) {
      return std::string{static_cast<char>('0' + (mode >> 6 & 7)),
                         static_cast<char>('0' + (mode >> 3 & 7)),
                         static_cast<char>('0' + (mode & 7))};
    };
    return system_failure(number, "the fabric's name " + path_ + " is taken by a file of user " +
                                      std::to_string(found.st_uid) + " with mode " +
                                      octal(found.st_mode) + "; it must be of user " +
                                      std::to_string(::geteuid()) + " with mode 600");
  }

  error other_version(std::uint64_t magic, std::uint32_t version, std::uint32_t size) const {
    if (magic != segment_magic)
      return {errc::mismatch, "the fabric " + path_ + " is in use, and its segment is damaged"};
    return {errc::mismatch, "processes on the fabric " + path_ + " have version " +
                                std::to_string(version) + " of its layout, of " +
                                std::to_string(size) + " bytes; this one has version " +
                                std::to_string(segment_version) + ", of " +
                                std::to_string(sizeof(segment)) + " bytes"};
  }

  static std::uint64_t pid_namespace() noexcept {
    struct stat found{};
    return ::stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
  }

  error other_namespace() const {
    return {errc::mismatch,
            "the processes on the fabric " + path_ + " are of PID namespace " +
                std::to_string(segment_->pid_namespace) + ", this one is of " +
                std::to_string(pid_namespace()) +
                ": in another container whether they live can not be told; use a fabric of another "
                "name, or one PID namespace for all (docker run --pid=container:NAME)"};
  }

  result<void> make_anew() const {
    remove_memory();
    if (::ftruncate(file_, 0) != 0)
      return system_failure(errno, "cannot renew the fabric " + path_);
    return fill(file_, sizeof(segment), "the fabric " + path_);
  }

  /// Gives a file its pages. What is asked for in vain takes none, and a limit of the process is
  /// told instead of ending it by SIGXFSZ.
  static result<void> fill(int file, std::size_t length, const std::string& what) {
    const std::string asked = "cannot make " + what + " of " + std::to_string(length) + " bytes";
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        length > limit.rlim_cur) {
      return error{errc::capacity, asked + ": a file of this process may have " +
                                       std::to_string(limit.rlim_cur) +
                                       " (RLIMIT_FSIZE, see ulimit -f)"};
    }
    struct statvfs whole{};
    const bool known = ::fstatvfs(file, &whole) == 0 && whole.f_blocks != 0;
    const std::uint64_t left =
        known ? std::uint64_t{whole.f_bavail} * whole.f_frsize : ~std::uint64_t{0};
    const int number =
        length > left ? ENOSPC : ::posix_fallocate(file, 0, static_cast<off_t>(length));
    if (number == 0) return success();
    if (number == ENOSPC || number == EFBIG) {
      return error{errc::capacity, asked + ": " + std::to_string(known ? left : 0) +
                                       " are left of the shared memory in /dev/shm"};
    }
    return system_failure(number, asked);
  }

  /// What processes left that are no more: files called as the segment, a dot and numbers.
  void remove_memory() const noexcept {
    const std::size_t slash = path_.rfind('/');
    const std::unique_ptr<DIR, int (*)(DIR*)> folder{::opendir(path_.substr(0, slash).c_str()),
                                                     [](DIR* open) { return ::closedir(open); }};
    if (folder == nullptr) return;
    const std::string start = path_.substr(slash + 1) + ".";
    while (const dirent* each = ::readdir(folder.get())) {
      const std::string_view name{each->d_name};
      if (name.substr(0, start.size()) == start) ::unlinkat(::dirfd(folder.get()), each->d_name, 0);
    }
  }

  std::string path_;
  int file_ = -1;
  segment* segment_ = nullptr;
  std::uint64_t identity_ = 0;
};

}  // namespace verbena::soft
