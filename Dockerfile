# The gateway and its simulated replica: one image, one command.
#   docker build -t spangate .
#   docker run -p 8080:8080 -v ./gateway.yaml:/etc/spangate/gateway.yaml:ro -v spangate-state:/var/lib/spangate spangate
FROM node:26.10.0-slim AS build
WORKDIR /app
COPY . .
RUN npm ci && npm prune --omit=dev --ignore-scripts

FROM node:26.10.0-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
# For state_dir: the salt, the drains and records in files outlive the container.
RUN install -d -o node -g node -m 700 /var/lib/spangate
VOLUME /var/lib/spangate
USER node
EXPOSE 8080 9090
# No debugger for a SIGUSR1 that comes before the gateway's own code has run.
ENTRYPOINT ["node", "--disable-sigusr1", "/app/dist/src/main.js"]
CMD ["-config", "/etc/spangate/gateway.yaml"]
