// @vitest-environment node
import { areaPath, cellsAlong, cellsUnder, edgePath, middleOf, sizesOf } from "./brush";
import { Region } from "./region";

const GRID = 6;
const sorted = (cells: number[]): number[] => [...cells].sort((a, b) => a - b);

test("the brushes of every grid differ, and the smallest is one cell", () => {
  for (let grid = 4; grid <= 64; grid += 1) {
    const [small, middle, large] = sizesOf(grid);
    expect(small).toBe(1);
    expect(middle).toBeGreaterThan(small);
    expect(large).toBeGreaterThan(middle);
    expect(large).toBeLessThanOrEqual(Math.max(3, grid / 4));
  }
  expect(sizesOf(28)).toEqual([1, 3, 5]);
});

test("the smallest brush covers the cell under it, wherever in the cell it stands", () => {
  for (const [x, y] of [[2.01, 3.01], [2.5, 3.5], [2.99, 3.99]] as const)
    expect(cellsUnder({ x, y }, 1, GRID)).toEqual([3 * GRID + 2]);
});

test("a round brush covers the cells whose middles lie within it, and none outside the grid", () => {
  const plus = [1 * GRID + 2, 2 * GRID + 1, 2 * GRID + 2, 2 * GRID + 3, 3 * GRID + 2];
  expect(sorted(cellsUnder({ x: 2.5, y: 2.5 }, 2, GRID))).toEqual(plus);
  // Of 25 cells around the middle the four corners are 2.83 away.
  expect(cellsUnder({ x: 3.5, y: 3.5 }, 5, 28)).toHaveLength(21);
  expect(sorted(cellsUnder({ x: 0.5, y: 0.5 }, 3, GRID))).toEqual([0, 1, GRID, GRID + 1]);
  expect(cellsUnder({ x: -9, y: 3 }, 3, GRID)).toEqual([]);
});

test("a fast stroke leaves no gap", () => {
  const along = sorted(cellsAlong({ x: 0.5, y: 0.5 }, { x: 5.5, y: 0.5 }, 1, GRID));
  expect(along).toEqual([0, 1, 2, 3, 4, 5]);
  const diagonal = cellsAlong(middleOf(0, 28), middleOf(28 * 28 - 1, 28), 1, 28);
  for (let place = 0; place < 28; place += 1) expect(diagonal).toContain(place * 29);
});

/** Twice the area that a path of rectangles encloses, and the length of a path of single lines. */
function measured(path: string): { area: number; length: number } {
  let [area, length] = [0, 0];
  for (const [, width] of path.matchAll(/h(\d+)v1h-\d+z/g)) area += Number(width);
  for (const _ of path.matchAll(/[hv]1(?=M|$)/g)) length += 1;
  return { area, length };
}

test("what is drawn has the area of the marked cells and their outer border, holes included", () => {
  const ring = [7, 8, 9, 13, 15, 19, 20, 21];
  expect(measured(areaPath(ring, GRID)).area).toBe(8);
  expect(measured(edgePath(ring, GRID)).length).toBe(12 + 4);
  // The last cell of a row and the first of the next are no neighbours.
  expect(measured(edgePath([5, 6], GRID)).length).toBe(8);
  expect([...areaPath([5, 6], GRID).matchAll(/M/g)]).toHaveLength(2);
  expect(areaPath([], GRID) + edgePath([], GRID)).toBe("");
});

function stroke(region: Region, cells: number[], isMarking = true): boolean {
  region.begin();
  region.paint(cells, isMarking);
  return region.end();
}

test("strokes are taken back and made again one by one; a new one forgets those that were taken back", () => {
  const region = new Region();
  expect(stroke(region, [3, 1, 2])).toBe(true);
  expect(stroke(region, [2, 9])).toBe(true);
  expect(stroke(region, [1, 4], false)).toBe(true);
  expect(region.cells).toEqual([2, 3, 9]);
  region.undo();
  expect(region.cells).toEqual([1, 2, 3, 9]);
  region.undo();
  expect(region.cells).toEqual([1, 2, 3]);
  region.redo();
  expect(region.cells).toEqual([1, 2, 3, 9]);
  stroke(region, [20]);
  expect([region.canRedo, region.redo()]).toEqual([false, false]);
  for (let step = 0; step < 3; step += 1) region.undo();
  expect([region.cells, region.canUndo, region.undo()]).toEqual([[], false, false]);
});

test("clearing can be taken back, and what changes nothing is no stroke", () => {
  const region = new Region();
  expect([region.clear(), stroke(region, [1], false), region.canUndo]).toEqual([false, false, false]);
  stroke(region, [1, 5]);
  expect(stroke(region, [5])).toBe(false);
  region.clear();
  expect(region.count).toBe(0);
  region.undo();
  expect(region.cells).toEqual([1, 5]);
});

test("a stroke that the browser called off leaves nothing behind", () => {
  const region = new Region();
  stroke(region, [1]);
  region.begin();
  region.paint([2, 3], true);
  region.cancel();
  expect(region.cells).toEqual([1]);
  region.undo();
  expect(region.cells).toEqual([]);
});

test("what is kept comes back whole, a stroke that is being made included", () => {
  const region = new Region();
  stroke(region, [1, 2]);
  stroke(region, [3]);
  region.undo();
  region.begin();
  region.paint([7], true);
  const again = new Region();
  again.restore(JSON.parse(JSON.stringify(region.keep())));
  expect([again.cells, again.canRedo]).toEqual([[1, 2, 7], false]);
  again.undo();
  expect(again.cells).toEqual([1, 2]);
});
