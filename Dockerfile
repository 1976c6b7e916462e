# An image with xgb-dp and its command line, on the newest pinned release of XGBoost:
#
#   docker build -t xgb-dp .
#   docker run --rm -v "$PWD:/data" -w /data xgb-dp train people.csv --schema people.yaml ...
#
# The build asks the package index that pip is configured for; `--build-arg PIP_INDEX_URL=...` names
# another one. Versions of Debian's packages are those of the image, which carries security updates.
ARG PYTHON=3.12

# What a build needs; the dev container starts here (.devcontainer).
FROM python:${PYTHON}-slim-bookworm AS tools
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends ccache g++ git make openssh-client \
 && rm -rf /var/lib/apt/lists/*

FROM tools AS build
ARG PIP_INDEX_URL
WORKDIR /src
COPY . .
RUN python -m pip wheel --no-cache-dir --no-deps -w /wheels .

FROM python:${PYTHON}-slim-bookworm
ARG PIP_INDEX_URL
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
# libgomp is the OpenMP runtime of the library, which is not copied into this wheel.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends libgomp1 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 user
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    wheel=$(echo /wheels/xgb_dp-*.whl) \
 && python -m pip install --no-cache-dir "${wheel}[cli,federated,plot,sklearn]"
USER 1000
WORKDIR /home/user
RUN xgb-dp --version
ENTRYPOINT ["xgb-dp"]
CMD ["--version"]
