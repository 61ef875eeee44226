#include "runtime/data/images/ImageFile.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace sluice::runtime {

static constexpr int64_t mostPixels = INT64_C(1) << 26;

//===- libraries --------------------------------------------------------------------------------------------------===//

namespace {
/// How to load a library: by the path in the environment variable `variable`, else by the loader's search for `file`.
/// `what` and `package` are for the error.
struct LibraryName {
  const char *what, *variable, *file, *package;
};

class Library {
public:
  explicit Library(const LibraryName &name) : name_(name) {
    const char *named = std::getenv(name.variable);
    handle_ = dlopen(named && *named ? named : name.file, RTLD_NOW | RTLD_LOCAL);
    if (!handle_)
      problem_ = dlerror();
  }

  template <typename Function> void find(Function *&function, const char *symbol) {
    function = handle_ ? reinterpret_cast<Function *>(dlsym(handle_, symbol)) : nullptr;
    if (handle_ && !function && problem_.empty())
      problem_ = dlerror();
  }

  void require() const {
    if (!problem_.empty())
      failUnsupported(concat(name_.what, " images need ", name_.file, ", which cannot be used: ", problem_,
                             "; install ", name_.package, ", or name the library in ", name_.variable));
  }

private:
  LibraryName name_;
  void *handle_ = nullptr; // never closed: other threads may be executing its code when the process ends
  std::string problem_;
};

/// The functions of libturbojpeg 2 and of its ABI 0 since 1.4.
struct TurboJpeg {
  Library library{{"JPEG", "SLUICE_TURBOJPEG", "libturbojpeg.so.0", "libturbojpeg0"}};
  void *(*initDecompress)();
  int (*destroy)(void *);
  int (*header)(void *, const unsigned char *, unsigned long, int *, int *, int *, int *);
  int (*decompress)(void *, const unsigned char *, unsigned long, unsigned char *, int, int, int, int, int);
  char *(*errorText)(void *);

  TurboJpeg() {
    library.find(initDecompress, "tjInitDecompress");
    library.find(destroy, "tjDestroy");
    library.find(header, "tjDecompressHeader3");
    library.find(decompress, "tjDecompress2");
    library.find(errorText, "tjGetErrorStr2");
  }
  static const TurboJpeg &get() {
    static const TurboJpeg library;
    return library;
  }
};

/// png_image of png.h, version 1.
struct PngImage {
  void *opaque;
  uint32_t version, width, height, format, flags, colormapEntries, warningOrError;
  char message[64];
};

struct Png {
  Library library{{"PNG", "SLUICE_PNG", "libpng16.so.16", "libpng16-16"}};
  int (*begin)(PngImage *, const void *, size_t);
  int (*finish)(PngImage *, const void *, void *, int32_t, void *);
  void (*free)(PngImage *);

  Png() {
    library.find(begin, "png_image_begin_read_from_memory");
    library.find(finish, "png_image_finish_read");
    library.find(free, "png_image_free");
  }
  static const Png &get() {
    static const Png library;
    return library;
  }
};
} // namespace

void requireDecoder(ImageKind kind) {
  kind == ImageKind::jpeg ? TurboJpeg::get().library.require() : Png::get().library.require();
}

//===- decoding ---------------------------------------------------------------------------------------------------===//

static Image blankImage(int64_t width, int64_t height, int64_t channels, const std::string &name) {
  if (width < 1 || height < 1)
    failInvalid(concat(name, ": a damaged image: it has no pixels"));
  if (width > mostPixels / height)
    failInvalid(concat(name, ": an image of ", width, " x ", height, " pixels; at most 2^26 are supported"));
  return {width, height, std::vector<uint8_t>(static_cast<size_t>(width * height * channels))};
}

/// Removes the fourth channel of each pixel.
static void keepThreeChannels(Image &image) {
  for (size_t pixel = 0; 4 * pixel < image.pixels.size(); ++pixel)
    std::memmove(&image.pixels[3 * pixel], &image.pixels[4 * pixel], 3);
  image.pixels.resize(image.pixels.size() / 4 * 3);
}

/// Converts CMYK to RGB; the values are inverted, as Photoshop stores them. The result matches Pillow's bit for bit:
/// the shifts divide the product by 255.
static Image rgbOf(Image cmyk) {
  for (size_t at = 0; at < cmyk.pixels.size(); at += 4) {
    int light = cmyk.pixels[at + 3];
    for (size_t channel = at; channel < at + 3; ++channel) {
      int product = (255 - cmyk.pixels[channel]) * light + 128;
      cmyk.pixels[channel] = static_cast<uint8_t>(light - (((product >> 8) + product) >> 8));
    }
  }
  keepThreeChannels(cmyk);
  return cmyk;
}

namespace {
/// Owns a decompressor.
class JpegReader {
public:
  JpegReader(const TurboJpeg &jpeg, const std::string &name)
      : jpeg_(jpeg), name_(name), handle_(jpeg.initDecompress()) {
    if (!handle_)
      failExhausted(concat(name, ": libturbojpeg has no memory"));
  }
  JpegReader(const JpegReader &) = delete;
  JpegReader &operator=(const JpegReader &) = delete;
  ~JpegReader() { jpeg_.destroy(handle_); }

  Image read(const Bytes &content) {
    constexpr int rgb = 0, cmyk = 11, accurate = 4096; // TJPF_RGB, TJPF_CMYK, TJFLAG_ACCURATEDCT
    constexpr int spaceCmyk = 3, spaceYcck = 4;        // TJCS_CMYK, TJCS_YCCK
    const auto *data = reinterpret_cast<const unsigned char *>(content.data());
    int width = 0, height = 0, subsampling = 0, space = 0;
    check(jpeg_.header(handle_, data, content.size(), &width, &height, &subsampling, &space));
    bool isCmyk = space == spaceCmyk || space == spaceYcck;
    Image image = blankImage(width, height, isCmyk ? 4 : 3, name_);
    check(jpeg_.decompress(handle_, data, content.size(), image.pixels.data(), width, 0, height, isCmyk ? cmyk : rgb,
                           accurate));
    return isCmyk ? rgbOf(std::move(image)) : image;
  }

private:
  /// Fails unless a call succeeded. libturbojpeg also returns an error for warnings, which mean damage.
  void check(int code) {
    if (code != 0)
      failInvalid(concat(name_, ": a damaged JPEG image: ", jpeg_.errorText(handle_)));
  }

  const TurboJpeg &jpeg_;
  const std::string &name_;
  void *handle_;
};
} // namespace

static Image decodeJpeg(const Bytes &content, const std::string &name) {
  const TurboJpeg &jpeg = TurboJpeg::get();
  jpeg.library.require();
  return JpegReader(jpeg, name).read(content);
}

/// Removes color profiles and gamma, because libpng would convert pixels by them. A PNG file is a sequence of chunks: a
/// length, a kind, the content and a checksum.
static Bytes withoutProfiles(const Bytes &content) {
  static constexpr std::string_view profiles[] = {"gAMA", "sRGB", "iCCP", "cHRM", "cICP", "mDCV", "cLLI"};
  constexpr size_t signature = 8, around = 12; // bytes: of the file's signature; of a chunk without its content
  Bytes kept(content.begin(), content.begin() + signature);
  size_t at = signature;
  while (content.size() - at >= around) {
    auto byte = [&](size_t place) { return std::to_integer<size_t>(content[at + place]); };
    size_t bytes = around + (byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3));
    std::string_view kind(reinterpret_cast<const char *>(&content[at + 4]), 4);
    if (bytes > content.size() - at || kind == "IDAT")
      break;
    if (std::find(std::begin(profiles), std::end(profiles), kind) == std::end(profiles))
      kept.insert(kept.end(), content.begin() + static_cast<std::ptrdiff_t>(at),
                  content.begin() + static_cast<std::ptrdiff_t>(at + bytes));
    at += bytes;
  }
  kept.insert(kept.end(), content.begin() + static_cast<std::ptrdiff_t>(at), content.end());
  return kept;
}

static Image decodePng(const Bytes &file, const std::string &name) {
  const Png &png = Png::get();
  png.library.require();
  constexpr uint32_t rgba = 3, sixteenBitSrgb = 4; // PNG_FORMAT_RGBA, PNG_IMAGE_FLAG_16BIT_sRGB
  Bytes content = withoutProfiles(file);
  PngImage header{};
  header.version = 1;
  auto fail = [&] {
    std::string message = header.message;
    png.free(&header);
    failInvalid(concat(name, ": a damaged PNG image: ", message));
  };
  if (!png.begin(&header, content.data(), content.size()))
    fail();
  Image image;
  Status status = guarded([&] { image = blankImage(header.width, header.height, 4, name); });
  if (!status.ok()) {
    png.free(&header);
    throw Error(status.code, status.message);
  }
  header.format = rgba;
  header.flags |= sixteenBitSrgb; // without this flag 16-bit samples are linear light
  if (!png.finish(&header, nullptr, image.pixels.data(), 0, nullptr))
    fail();
  keepThreeChannels(image);
  return image;
}

Image decodeImage(const Bytes &content, const std::string &name) {
  auto begins = [&](std::string_view magic) {
    return content.size() >= magic.size() && std::memcmp(content.data(), magic.data(), magic.size()) == 0;
  };
  if (begins("\xff\xd8"))
    return decodeJpeg(content, name);
  if (begins("\x89PNG\r\n\x1a\n"))
    return decodePng(content, name);
  failInvalid(concat(name, ": is neither a JPEG nor a PNG image"));
}

} // namespace sluice::runtime
