import fc from 'fast-check';
import { parseAndValidateFlightRouterState } from 'next/dist/server/app-render/parse-and-validate-flight-router-state';
import { expect, test } from 'vitest';
import { isRouterState } from '@/lib/access/router-state.mjs';

function nextTakes(header: string): boolean {
  try {
    parseAndValidateFlightRouterState(header);
    return true;
  } catch {
    return false;
  }
}

const text = fc.constantFrom('', 'a', '__PAGE__');
const other = fc.oneof(
  text,
  fc.constant(null),
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.array(text, { maxLength: 4 }),
);
/** Nearly always `usual`, and now and then something else. */
const mostly = (usual: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 40, arbitrary: usual }, { weight: 1, arbitrary: other });
const kind = fc.constantFrom('c', 'oc', 'd', 'ci(.)', 'ci(..)(..)', 'di(...)');
const segment = fc.oneof(text, fc.tuple(text, text, mostly(kind), mostly(fc.oneof(fc.constant(null), fc.array(text)))));
const rest = fc
  .tuple(
    mostly(fc.oneof(fc.constant(null), fc.tuple(text, text))),
    mostly(fc.constantFrom(null, 'refetch', 'inside-shared-layout', 'metadata-only')),
    mostly(fc.oneof(fc.constant(null), fc.integer())),
    mostly(text),
    other,
  )
  .chain((all) => fc.nat({ max: 5 }).map((count) => all.slice(0, count)));
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc
    .tuple(
      mostly(segment),
      mostly(
        fc.oneof(
          { depthSize: 'small', withCrossShrink: true },
          fc.constant({}),
          fc.dictionary(text, tie('tree'), { maxKeys: 2 }),
        ),
      ),
      rest,
    )
    .map(([one, children, more]) => [one, children, ...more]),
}));

test('accepts exactly what Next accepts', () => {
  let [taken, refused] = [0, 0];
  fc.assert(
    fc.property(
      fc.oneof(
        tree.map((value) => encodeURIComponent(JSON.stringify(value))),
        fc.string(),
      ),
      (header) => {
        const isTaken = nextTakes(header);
        if (isTaken) taken += 1;
        else refused += 1;
        expect([header, isRouterState(header)]).toEqual([header, isTaken]);
      },
    ),
    { numRuns: 5_000 },
  );
  expect(Math.min(taken, refused)).toBeGreaterThan(100);
});

test('a state that is too long, or came twice, is refused; none is none', () => {
  const nested = encodeURIComponent(JSON.stringify(['a'.repeat(40_000), {}]));
  expect([isRouterState(nested), isRouterState(['', '']), isRouterState(undefined)]).toEqual([false, false, true]);
});
