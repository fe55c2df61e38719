import { describeConformanceMutants, QUICK } from '../support/conformance-mutants';

describeConformanceMutants((title) => !QUICK.has(title));
