/**
 * Streams: resume, order, dedupe and back-pressure.
 *
 * @type {readonly import('./mutant.mjs').Mutant[]}
 */
export const LIVE = [
  {
    name: 'joins before a lagging replica has caught up',
    file: 'lib/fan-out/catch-up.ts',
    find: 'if (page.complete && position >= mustReach) {',
    replace: 'if (page.complete) {',
    test: 'tests/unit/fan-out/fan-out.test.ts',
  },
  {
    name: 'takes a repeated frame as new',
    file: 'components/live/topic-track.ts',
    find: 'if (comparePositions(frame.id, this.position) <= 0) return false;',
    replace: '',
    test: 'tests/ui/topic-track.test.ts',
  },
];
