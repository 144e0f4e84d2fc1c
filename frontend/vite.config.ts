import { defineConfig } from "vitest/config";

// The server inserts the study into dist/index.html and serves everything else under this path.
export default defineConfig({
  base: "/static/participant/",
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  test: {
    environment: "jsdom",
    // @jspsych/test-utils speaks of a global `expect`.
    globals: true,
    restoreMocks: true,
  },
});
