/** The cells of a square grid that a brush covers. Cell `row * grid + column`; places are in cells from the top left. */

export interface Place {
  x: number;
  y: number;
}

/** Small, middle and large brush: their diameters in cells, each larger than the one before. */
export function sizesOf(grid: number): [number, number, number] {
  const middle = Math.max(2, Math.round(grid / 10));
  return [1, middle, Math.max(middle + 1, Math.round(grid / 5.6))];
}

/** A round brush covers the cells whose middles it covers, and the cell under its middle in any case. */
export function cellsUnder({ x, y }: Place, size: number, grid: number): number[] {
  const radius = size / 2;
  const out: number[] = [];
  const [top, bottom] = [Math.max(0, Math.floor(y - radius)), Math.min(grid - 1, Math.ceil(y + radius))];
  const [left, right] = [Math.max(0, Math.floor(x - radius)), Math.min(grid - 1, Math.ceil(x + radius))];
  for (let row = top; row <= bottom; row += 1)
    for (let column = left; column <= right; column += 1) {
      const isUnder = row === Math.floor(y) && column === Math.floor(x);
      if (isUnder || Math.hypot(column + 0.5 - x, row + 0.5 - y) <= radius) out.push(row * grid + column);
    }
  return out;
}

/** A quarter of a cell: no cell between two places is passed over. */
const STEP = 0.25;

/** What the brush covers on its way from one place to another. */
export function cellsAlong(from: Place, to: Place, size: number, grid: number): number[] {
  const steps = Math.max(1, Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / STEP));
  const covered = new Set<number>();
  for (let step = 0; step <= steps; step += 1) {
    const [x, y] = [from.x + ((to.x - from.x) * step) / steps, from.y + ((to.y - from.y) * step) / steps];
    for (const cell of cellsUnder({ x, y }, size, grid)) covered.add(cell);
  }
  return [...covered];
}

/** The middle of a cell. */
export function middleOf(cell: number, grid: number): Place {
  return { x: (cell % grid) + 0.5, y: Math.floor(cell / grid) + 0.5 };
}

/** Cells as an SVG path in units of cells: each row of neighbours is one rectangle. */
export function areaPath(cells: readonly number[], grid: number): string {
  const marked = new Set(cells);
  let path = "";
  for (const cell of marked) {
    if (cell % grid > 0 && marked.has(cell - 1)) continue;
    let width = 1;
    while ((cell + width) % grid > 0 && marked.has(cell + width)) width += 1;
    path += `M${cell % grid} ${Math.floor(cell / grid)}h${width}v1h-${width}z`;
  }
  return path;
}

/** The border between marked cells and all others, in the same units. */
export function edgePath(cells: readonly number[], grid: number): string {
  const marked = new Set(cells);
  let path = "";
  for (const cell of marked) {
    const [column, row] = [cell % grid, Math.floor(cell / grid)];
    if (row === 0 || !marked.has(cell - grid)) path += `M${column} ${row}h1`;
    if (row === grid - 1 || !marked.has(cell + grid)) path += `M${column} ${row + 1}h1`;
    if (column === 0 || !marked.has(cell - 1)) path += `M${column} ${row}v1`;
    if (column === grid - 1 || !marked.has(cell + 1)) path += `M${column + 1} ${row}v1`;
  }
  return path;
}
