/** As shells have it for who is ended by them. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 };

/** npm passes on what a terminal has sent already to all that run in it. */
const TWICE_BY_NPM_MS = 250;

/** @typedef {keyof typeof EXIT_CODES} Signal */

/**
 * How the process ends when it is told to, by Ctrl-C or SIGTERM: after what has to be done first, and at once when it is
 * told again. From the first line on, because in a container, where it is the first process, nothing else would end it.
 *
 * @param {NodeJS.ProcessEnv} env
 * @returns {{ tell(name: Signal): void, after(work: () => Promise<unknown>): void }} `after` says what has to be done,
 *   which must come to an end by itself
 */
export function ending(env = process.env) {
  /** @type {() => Promise<unknown>} */
  let work = () => Promise.resolve();
  /** @type {{ name: Signal, at: number } | null} */
  let told = null;
  /** @param {Signal} name */
  const tell = (name) => {
    const exit = () => process.exit(EXIT_CODES[name]);
    if (told === null) {
      told = { name, at: performance.now() };
      void work()
        .catch(() => {})
        .then(exit);
      return;
    }
    const isSame = told.name === name && performance.now() - told.at < TWICE_BY_NPM_MS;
    if (!isSame || env.npm_lifecycle_event !== 'start') exit();
  };
  for (const name of /** @type {Signal[]} */ (Object.keys(EXIT_CODES))) process.on(name, () => tell(name));
  return {
    tell,
    after(given) {
      work = given;
    },
  };
}
