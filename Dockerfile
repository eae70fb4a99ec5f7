# Skein for people who have Docker: built in one image, run in another that holds only what runs.
#
#   docker build -t skein .                          CPU; any x86-64 machine with AVX2
#   docker build -t skein --build-arg DEVICE=cuda .  CPU and GPU; needs BuildKit, and --gpus all to run
#
#   docker run --rm skein --doctor                                         is this machine in order?
#   docker run --rm -v $PWD/runs:/runs skein                               four workers learn Fashion-MNIST
#   docker run --rm -v $PWD:/work -w /work --shm-size 1g skein --data imagefolder:photos --model resnet18
#   docker run --rm --entrypoint gossip_avg skein --workers 4 --size 1000
#
# Several hosts: --network host, and RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and SKEIN_KEY_FILE by -e. Files are written
# as root unless --user says otherwise.
ARG DEVICE=cpu
ARG CUDA=13.0.1

FROM debian:12-slim AS build-on-cpu
FROM nvidia/cuda:${CUDA}-cudnn-devel-ubuntu24.04 AS build-on-cuda
FROM debian:12-slim AS run-on-cpu
FROM nvidia/cuda:${CUDA}-cudnn-runtime-ubuntu24.04 AS run-on-cuda

FROM build-on-${DEVICE} AS build
ARG DEVICE
COPY . /src
WORKDIR /src
RUN scripts/install && apt-get install -y -qq --no-install-recommends patchelf python3 binutils dataset-fashion-mnist
RUN cmake --preset ${DEVICE} -DBUILD_TESTING=OFF -DSKEIN_BENCH=OFF && cmake --build --preset ${DEVICE}
RUN tools/make_bundle --programs --build build/${DEVICE} --out build/bundle.tar \
 && mkdir /opt/skein && tar -C /opt/skein -xf build/bundle.tar

FROM run-on-${DEVICE}
COPY --from=build /opt/skein /opt/skein
COPY --from=build /usr/share/datasets/fashion-mnist /usr/share/datasets/fashion-mnist
ENV PATH=/opt/skein/bin:$PATH
WORKDIR /runs
ENTRYPOINT ["train_imagenet"]
CMD ["--config", "/opt/skein/recipes/quickstart.toml", "--output", "/runs/quickstart"]
