import { inProcessServer } from '../support/server-target';
import { describeAttachmentsContract } from './attachments-contract';
import { describeCommandsContract } from './commands-contract';
import { sharedServer } from './contract';
import { describeFleetContract } from './fleet-contract';
import { describeIngestContract } from './ingest-contract';
import { describeInsightsContract } from './insights-contract';
import { describeLogLevelContract } from './log-level-contract';
import { describeLogsContract } from './logs-contract';
import { describeObligationsContract } from './obligations-contract';
import { describeOwnershipContract } from './ownership-contract';
import { describeReadModelsContract } from './read-models-contract';
import { describeReadsContract } from './reads-contract';
import { describeRequestsContract } from './requests-contract';
import { describeStreamContract } from './stream-contract';
import { describeTaskOutputContract } from './task-output-contract';
import { describeTurnAtContract } from './turn-at-contract';

/** The contract against the handlers alone. The suites that mutants run have their own files. */
const name = 'in this process';
const shared = sharedServer(inProcessServer);

// First, because it looks at all rows.
describeIngestContract(name, shared);
describeStreamContract(name, shared);
describeReadModelsContract(name, shared);
describeCommandsContract(name, shared);
describeRequestsContract(name, shared);
describeLogLevelContract(name, shared);
describeInsightsContract(name, shared, { isBulk: true });
describeAttachmentsContract(name, shared);
describeObligationsContract(name, shared);
describeOwnershipContract(name, shared);
describeLogsContract(name, shared);
describeTaskOutputContract(name, shared);
describeTurnAtContract(name, shared);
describeFleetContract(name, shared);
// On its own server: it compares all rows.
describeReadsContract(name, inProcessServer);
