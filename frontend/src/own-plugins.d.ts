/** A lab's own tables, or empty ones; made by `frontend/build/own-plugins.ts`. */
declare module "virtual:legible-plugins" {
  export const kinds: Record<string, import("./plugins/kind").Kind>;
  export const gates: Record<string, import("./pages/gate").Gate>;
}
