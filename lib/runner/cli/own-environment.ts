type Environment = Record<string, string | undefined>;

/**
 * Removes Interlude's own variables, above all its tokens, from the environment of this process, so that neither code
 * loaded later (an agent's SDK, say) nor child processes find them.
 *
 * @returns the environment as it was
 */
export function takeOwnEnvironment(environment: Environment): Environment {
  const whole = { ...environment };
  for (const name of Object.keys(whole)) if (/^INTERLUDE_/i.test(name)) delete environment[name];
  return whole;
}
