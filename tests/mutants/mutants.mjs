import { LIVE } from './live.mjs';

/** @type {readonly import('./mutant.mjs').Mutant[]} */
export const MUTANTS = [...LIVE];
