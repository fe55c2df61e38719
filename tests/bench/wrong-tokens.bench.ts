import { Guesser } from '../support/guesser';
import { startLiveServer } from '../support/live-server';
import { note, report } from './report';

/**
 * How long requests with a right token take while 260 with a wrong one are in flight from the same address: the 11th
 * fastest of 12. A request that is refused counts as one that took for ever.
 */
const server = await startLiveServer();
const guesser = new Guesser(server.url, 260);
try {
  // the line is full from then on
  await guesser.try(server.token, 3);
  const tried = await guesser.try(server.token, 12);
  const times = tried.map(({ status, tookMs }) => (status === 200 ? tookMs : Number.POSITIVE_INFINITY));
  times.sort((a, b) => a - b);
  note('right requests beside 260 wrong ones in flight, answered 200', times.filter(Number.isFinite).length, 'of 12');
  report('right requests beside 260 wrong ones in flight, 11th of 12', times[10] ?? Number.POSITIVE_INFINITY, 'ms', {
    atMost: 1_000,
  });
} finally {
  await guesser.stop();
  await server.stop();
}
