# Skein on Debian 12, CPU only:  docker build -t skein . && docker run --rm -v $PWD/runs:/runs skein
FROM debian:12-slim AS build
COPY . /src
WORKDIR /src
RUN scripts/install && cmake --preset cpu -DBUILD_TESTING=OFF && cmake --build --preset cpu

FROM debian:12-slim
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends libdnnl2 libucx0 libsodium23 libjpeg62-turbo libpng16-16 zlib1g libfmt9 \
      libgomp1 dataset-fashion-mnist \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/build/cpu/train_imagenet /usr/local/bin/
COPY --from=build /src/apps/recipes /usr/local/share/skein/recipes
ENTRYPOINT ["train_imagenet"]
CMD ["--config", "/usr/local/share/skein/recipes/quickstart.toml", "--output", "/runs/quickstart"]
