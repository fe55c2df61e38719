type Environment = Record<string, string | undefined>;

/**
 * Takes what is Interlude's own, its tokens above all, out of the environment of this process: neither what is loaded
 * from here on, an agent's SDK for instance, nor what is started finds it there.
 *
 * @returns the environment as it was
 */
export function takeOwnEnvironment(environment: Environment): Environment {
  const whole = { ...environment };
  for (const name of Object.keys(whole)) if (/^INTERLUDE_/i.test(name)) delete environment[name];
  return whole;
}
