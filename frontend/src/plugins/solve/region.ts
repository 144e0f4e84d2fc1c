/** The cells that are marked, stroke by stroke; each stroke can be taken back and made again. */

/** What survives a reload. A stroke is the cells that it changed, in no order. */
export interface Kept {
  cells: number[];
  done: number[][];
  undone: number[][];
}

export class Region {
  private readonly marked = new Set<number>();
  private done: number[][] = [];
  private undone: number[][] = [];
  /** The stroke that is being made; null between strokes. */
  private stroke: Set<number> | null = null;

  /** Ascending. */
  get cells(): number[] {
    return [...this.marked].sort((a, b) => a - b);
  }

  get count(): number {
    return this.marked.size;
  }

  get canUndo(): boolean {
    return this.done.length > 0;
  }

  get canRedo(): boolean {
    return this.undone.length > 0;
  }

  holds(cell: number): boolean {
    return this.marked.has(cell);
  }

  begin(): void {
    this.end();
    this.stroke = new Set();
  }

  /** Marks cells, or clears them, as a part of the stroke; says whether that changed any. */
  paint(cells: readonly number[], isMarking: boolean): boolean {
    const changed = cells.filter((cell) => this.marked.has(cell) !== isMarking);
    for (const cell of changed) this.flip(cell);
    // A stroke has one tool: it changes a cell once.
    for (const cell of changed) this.stroke?.add(cell);
    return changed.length > 0;
  }

  /** Says whether the stroke changed anything; one that did not is none. */
  end(): boolean {
    const { stroke } = this;
    this.stroke = null;
    if (stroke === null || stroke.size === 0) return false;
    this.done.push([...stroke]);
    this.undone = [];
    return true;
  }

  /** As if the stroke had not been begun. */
  cancel(): void {
    for (const cell of this.stroke ?? []) this.flip(cell);
    this.stroke = null;
  }

  undo(): boolean {
    this.end();
    return this.move(this.done, this.undone);
  }

  redo(): boolean {
    this.end();
    return this.move(this.undone, this.done);
  }

  /** Clears all cells; can be taken back like a stroke. */
  clear(): boolean {
    this.begin();
    this.paint(this.cells, false);
    return this.end();
  }

  /** A stroke that is being made is kept as if it ended here. */
  keep(): Kept {
    const stroke = this.stroke !== null && this.stroke.size > 0 ? [[...this.stroke]] : [];
    return { cells: this.cells, done: [...this.done, ...stroke], undone: stroke.length > 0 ? [] : this.undone };
  }

  restore({ cells, done, undone }: Kept): void {
    this.marked.clear();
    for (const cell of cells) this.marked.add(cell);
    [this.done, this.undone, this.stroke] = [done, undone, null];
  }

  private move(from: number[][], to: number[][]): boolean {
    const stroke = from.pop();
    if (stroke === undefined) return false;
    for (const cell of stroke) this.flip(cell);
    to.push(stroke);
    return true;
  }

  private flip(cell: number): void {
    if (!this.marked.delete(cell)) this.marked.add(cell);
  }
}
