import { CannotLoad, patiently } from "./trials";

const waited: number[] = [];
const wait = (delay_ms: number): Promise<void> => {
  waited.push(delay_ms);
  return Promise.resolve();
};

beforeEach(() => (waited.length = 0));

test("it asks again for what did not come, each time later", async () => {
  let asked = 0;
  const load = async (): Promise<string> => {
    asked += 1;
    if (asked < 4) throw new TypeError("Failed to fetch dynamically imported module");
    return "there";
  };
  expect(await patiently(load, wait)).toBe("there");
  expect(asked).toBe(4);
  expect(waited).toHaveLength(3);
  expect(waited[2]!).toBeGreaterThan(waited[0]!);
});

test("it does not ask for ever", async () => {
  const load = vi.fn(() => Promise.reject(new TypeError("gone")));
  await expect(patiently(load, wait)).rejects.toBeInstanceOf(CannotLoad);
  expect(load).toHaveBeenCalledTimes(waited.length + 1);
});
