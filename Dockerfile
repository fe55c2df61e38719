# The dashboard alone, in about 50 MB beside Node. Runners run where their agents do.
ARG NODE_IMAGE=node:20-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY lib/protocol/package.json lib/protocol/
COPY lib/runner/package.json lib/runner/
COPY lib/conformance/package.json lib/conformance/
RUN npm ci --include=dev --ignore-scripts
COPY . .
# To be beneath a path of a shared host: --build-arg INTERLUDE_BASE_PATH=/interlude
ARG INTERLUDE_BASE_PATH=
RUN node lib/launch/pack.mjs /packed

FROM ${NODE_IMAGE}
WORKDIR /app
ARG INTERLUDE_BASE_PATH=
COPY --from=build /packed ./
RUN mkdir /data && chown 1000:1000 /data && chmod 700 /data
ENV NODE_ENV=production HOST=0.0.0.0 PORT=4319 INTERLUDE_DATA_DIR=/data INTERLUDE_BASE_PATH=${INTERLUDE_BASE_PATH}
USER 1000:1000
VOLUME /data
EXPOSE 4319
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}${process.env.INTERLUDE_BASE_PATH ?? ''}/readyz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "lib/launch/start.mjs"]
