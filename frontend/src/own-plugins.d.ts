/** A lab's own tables, or empty ones; made by `frontend/build/own-plugins.ts`. */
declare module "virtual:legible-plugins" {
  type Kind = import("./plugins/kind").Kind;
  export const kinds: Record<string, Kind | (() => Promise<Kind>)>;
  export const gates: Record<string, import("./pages/gates/gate").Gate>;
}
