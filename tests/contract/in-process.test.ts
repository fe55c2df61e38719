import { inProcessServer } from '../support/server-target';
import { describeContract, sharedServer } from './contract';
import { describeReadsContract } from './reads-contract';

/** The contract against the handlers alone. The suites that mutants run have their own files. */
const name = 'in this process';
describeContract(name, sharedServer(inProcessServer), { isBulk: true, isSplit: true });
// On its own server: it compares all rows.
describeReadsContract(name, inProcessServer);
