/** What a gate is to the page. The table of all gates is `index.ts`. */
import type { GateView } from "../../frame/page-context";
import type { Value } from "../../server/model";

export interface Gate {
  /** Shows the gate and resolves with what is sent; null: the person cannot pass it, see `gave_up`. */
  page(view: GateView): Promise<Value | null>;
  /**
   * What it means that the server asks the same page again: the try failed, which the page says on top ("not_right")
   * or the study's own text does ("in_its_text"). Absent: nothing, as the gate is not judged.
   */
  again?: "not_right" | "in_its_text";
  /** Nobody has consented yet: no help, no leaving. */
  before_consent?: true;
  /** The reason that the server is told if `page` resolves with null. */
  gave_up?: string;
}
