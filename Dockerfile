# The rig as an image:  docker build -t rig . && docker run --rm -v "$PWD/out:/out" rig
FROM debian:bookworm-slim AS build
COPY setup/debian-packages /src/setup/
RUN apt-get -qq update \
 && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
      $(awk '$1 != "#" && $2 != "image" { print $1 }' /src/setup/debian-packages) >/dev/null
COPY requirements.lock /src/
RUN python3 -m venv /opt/rig \
 && /opt/rig/bin/pip install -q --no-cache-dir --require-hashes -r /src/requirements.lock
# Dawn, by the npm that is one of those packages.
COPY package.json package-lock.json /src/
RUN cd /src && PATH=/opt/rig/bin:$PATH npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
 && mkdir -p /opt/dawn/dist && cp node_modules/webgpu/*.js* node_modules/webgpu/LICENSE.md /opt/dawn/ \
 && cp -r node_modules/webgpu/dist/linux-* /opt/dawn/dist/
COPY . /src/
RUN /opt/rig/bin/pip install -q --no-cache-dir --no-deps --no-build-isolation /src \
 && /opt/rig/bin/pip uninstall -q -y editables hatchling pip setuptools \
 && cd /opt/rig/lib/python3*/site-packages \
 && find pandas scipy -type d -name tests -prune -exec rm -r {} +

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="webgpu-dispatch-rig" org.opencontainers.image.licenses="Apache-2.0"
# Empty: the pin in setup/chromium-pin. Debian's archive keeps few versions, so a pin goes stale.
ARG CHROMIUM_VERSION=
COPY setup/debian-packages setup/chromium-pin /usr/share/rig/
RUN pin=${CHROMIUM_VERSION:-$(head -n 1 /usr/share/rig/chromium-pin)} \
 && apt-get -qq update \
 && newest=$(apt-cache policy chromium-headless-shell | awk '$1 == "Candidate:" { print $2 }') \
 && { [ -n "$(apt-cache show "chromium-headless-shell=$pin" 2>/dev/null)" ] \
      || { echo "Chromium $pin is not in Debian's archive; to take its newest: --build-arg CHROMIUM_VERSION=$newest" >&2; exit 1; }; } \
 && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
      tini "chromium-headless-shell=$pin" "chromium=$pin" "chromium-common=$pin" \
      $(awk '$1 != "#" && $2 != "set-up" { print $1 }' /usr/share/rig/debian-packages) >/dev/null \
 && { [ -n "$CHROMIUM_VERSION" ] || [ "$(dpkg --print-architecture)" != amd64 ] \
      || tail -n +2 /usr/share/rig/chromium-pin | sha256sum -c --quiet; } \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
# 1000 is the first user of most machines: what is written to an /out that nobody else owns is most likely theirs.
RUN useradd --uid 1000 --no-create-home --shell /usr/sbin/nologin rig && install -d -o rig -g rig /out
COPY --from=build /opt/rig /opt/rig
COPY --from=build /opt/dawn /opt/dawn
RUN ln -s /opt/rig/bin/rig /usr/local/bin/rig
COPY setup/entrypoint /usr/local/bin/
ENV RIG_IN_CONTAINER=1 RIG_RUNS=/out RIG_DAWN=/opt/dawn PYTHONUNBUFFERED=1 LANG=C.UTF-8
# with "docker run --gpus all": without graphics the driver's Vulkan parts are not mounted
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics
WORKDIR /out
ENTRYPOINT ["/usr/bin/tini", "-s", "-g", "--", "/usr/local/bin/entrypoint"]
CMD ["rig", "run", "--profile", "quick"]
