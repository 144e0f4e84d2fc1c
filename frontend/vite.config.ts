import { resolve } from "node:path";
import { loadEnv } from "vite";
import { defineConfig } from "vitest/config";
import { compressed } from "./build/compressed.ts";
import { ownPlugins, VARIABLE } from "./build/own-plugins.ts";

const here = import.meta.dirname;

// The server inserts the study into dist/index.html and serves everything else under this path.
export default defineConfig(({ mode }) => ({
  base: "/static/participant/",
  plugins: [ownPlugins(here, loadEnv(mode, here, VARIABLE)[VARIABLE] ?? ""), compressed()],
  resolve: { alias: { legible: resolve(here, "src/extend.ts") } },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // One style sheet, which the page has from the start: no file waits for another.
    cssCodeSplit: false,
    reportCompressedSize: true,
  },
  test: {
    environment: "jsdom",
    // A slow machine is no fault of the page.
    testTimeout: 60_000,
    // @jspsych/test-utils speaks of a global `expect`.
    globals: true,
    restoreMocks: true,
    // A browser's window for each file took two thirds of the time.
    isolate: false,
  },
}));
