"""Every name that a broker of some release reads from broker.conf, and between which releases.

Read once from the sources by a script outside of the project: each public setter with one argument that MixAll.properties2Object
can fill, in the classes BrokerConfig, BrokerIdentity, MessageStoreConfig (of store and of tieredstore), TieredMessageStoreConfig,
NettyServerConfig, NettyClientConfig, AuthConfig, ControllerConfig and JraftConfig; and what BrokerStartup.properties2SystemEnv
asks for. From the tags 4.1.0 to 5.3.3, and from the source jars of 5.3.4 to 5.5.1. Of 5.3.4 only MessageStoreConfig is published:
the other classes are those of 5.4.0 there; AuthConfig and the tiered store of 5.5.1 are those of 5.5.0.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

Version = tuple[int, ...]

# By the first release that has the name; 4.1.0 is the first tag.
_SINCE = {
    "4.1.0": """
        accessMessageInMemoryMaxRatio adminBrokerThreadPoolNums autoCreateSubscriptionGroup autoCreateTopicEnable
        bitMapLengthConsumeQueueExt brokerClusterName brokerIP1 brokerIP2 brokerId brokerName brokerPermission
        brokerRole brokerTopicEnable channelNotActiveInterval checkCRCOnRecover cleanFileForciblyEnable
        cleanResourceInterval clientAsyncSemaphoreValue clientCallbackExecutorThreads clientChannelMaxIdleTimeSeconds
        clientCloseSocketIfTimeout clientManageThreadPoolNums clientManagerThreadPoolQueueCapacity
        clientOnewaySemaphoreValue clientPooledByteBufAllocatorEnable clientSocketRcvBufSize clientSocketSndBufSize
        clientWorkerThreads clusterTopicEnable commercialBaseCount commercialBigCount commercialEnable
        commercialTimerCount commercialTransCount commitCommitLogLeastPages commitCommitLogThoroughInterval
        commitIntervalCommitLog connectTimeoutMillis consumerFallbehindThreshold consumerManageThreadPoolNums
        consumerManagerThreadPoolQueueCapacity debugLockEnable defaultQueryMaxNum defaultTopicQueueNums
        deleteCommitLogFilesInterval deleteConsumeQueueFilesInterval deleteWhen destroyMapedFileIntervalForcibly
        disableConsumeIfConsumerReadSlowly diskFallRecorded diskMaxUsedSpaceRatio duplicationEnable
        enableCalcFilterBitMap enableConsumeQueueExt enablePropertyFilter expectConsumerNumUseFilter
        fastFailIfNoBufferInStorePool fetchNamesrvAddrByAddressServer fileReservedTime filterDataCleanTimeSpan
        filterServerNums filterSupportRetry flushCommitLogLeastPages flushCommitLogThoroughInterval
        flushCommitLogTimed flushConsumeQueueLeastPages flushConsumeQueueThoroughInterval
        flushConsumerOffsetHistoryInterval flushConsumerOffsetInterval flushDelayOffsetInterval flushDiskType
        flushIntervalCommitLog flushIntervalConsumeQueue flushLeastPagesWhenWarmMapedFile haHousekeepingInterval
        haListenPort haMasterAddress haSendHeartbeatInterval haSlaveFallbehindMax haTransferBatchSize highSpeedMode
        listenPort longPollingEnable mapedFileSizeCommitLog mapedFileSizeConsumeQueue mappedFileSizeConsumeQueueExt
        maxDelayTime maxErrorRateOfBloomFilter maxHashSlotNum maxIndexNum maxMessageSize maxMsgsNumBatch
        maxTransferBytesOnMessageInDisk maxTransferBytesOnMessageInMemory maxTransferCountOnMessageInDisk
        maxTransferCountOnMessageInMemory messageDelayLevel messageIndexEnable messageIndexSafe messageStorePlugIn
        namesrvAddr notifyConsumerIdsChangedEnable offsetCheckInSlave osPageCacheBusyTimeOutMills
        pullMessageThreadPoolNums pullThreadPoolQueueCapacity putMsgIndexHightWater redeleteHangedFileInterval
        regionId registerBrokerTimeoutMills rejectTransactionMessage rmqAddressServerDomain rmqAddressServerSubGroup
        rocketmqHome sendMessageThreadPoolNums sendThreadPoolQueueCapacity serverAsyncSemaphoreValue
        serverCallbackExecutorThreads serverChannelMaxIdleTimeSeconds serverOnewaySemaphoreValue
        serverPooledByteBufAllocatorEnable serverSelectorThreads serverSocketRcvBufSize serverSocketSndBufSize
        serverWorkerThreads shortPollingTimeMills slaveReadEnable startAcceptSendRequestTimeStamp storePathCommitLog
        storePathRootDir syncFlushTimeout traceOn transferMsgByHeap transientStorePoolEnable transientStorePoolSize
        useEpollNativeSelector useReentrantLockWhenPutMessage waitTimeMillsInSendQueue warmMapedFileEnable
    """,
    "4.2.0": """
        brokerFastFailureEnable queryMessageThreadPoolNums queryThreadPoolQueueCapacity useTLS
        waitTimeMillsInPullQueue
    """,
    "4.3.0": """
        compressedRegister forceRegister heartbeatThreadPoolNums heartbeatThreadPoolQueueCapacity
        registerNameServerPeriod transactionCheckInterval transactionCheckMax transactionTimeOut
        waitTimeMillsInHeartbeatQueue
    """,
    "4.3.1": """
        endTransactionPoolQueueCapacity endTransactionThreadPoolNums waitTimeMillsInTransactionQueue
    """,
    "4.4.0": """
        aclEnable msgTraceTopicName traceTopicEnable
    """,
    "4.5.1": """
        dLegerGroup dLegerPeers dLegerSelfId enableDLegerCommitLog
    """,
    "4.5.2": """
        mappedFileSizeCommitLog mappedFileSizeConsumeQueue
    """,
    "4.6.0": """
        processReplyMessageThreadPoolNums replyThreadPoolQueueCapacity storeReplyMessageEnable
    """,
    "4.7.1": """
        autoDeleteUnusedStats
    """,
    "4.8.0": """
        enableBatchPush preferredLeaderId
    """,
    "4.9.0": """
        enableScheduleMessageStats
    """,
    "4.9.2": """
        readOnlyCommitLogStorePaths
    """,
    "4.9.3": """
        enableDetailStat enableLmq enableMultiDispatch enableScheduleAsyncDeliver isolateLogEnable
        maxLmqConsumeQueueNum putMessageFutureThreadPoolNums putThreadPoolQueueCapacity
        scheduleAsyncDeliverMaxPendingLimit scheduleAsyncDeliverMaxResendNum2Blocked serverSocketBacklog slaveTimeout
        writeBufferHighWaterMark writeBufferLowWaterMark
    """,
    "4.9.4": """
        storePathDLedgerCommitLog
    """,
    "4.9.8": """
        configBlackList
    """,
    "5.0.0": """
        accountStatsEnable accountStatsPrintZeroValues ackMessageThreadPoolNums ackThreadPoolQueueCapacity
        adminBrokerThreadPoolQueueCapacity allAckInSyncStateSet asyncLearner asyncSendEnable bindAddress
        brokerConfigPath brokerHeartbeatInterval brokerNotActiveTimeoutMillis checkSyncStateSetPeriod
        cleanOfflineBrokerInterval cleanSwapedMapInterval commercialSizePerMsg commitLogForceSwapMapInterval
        commitLogSwapMapInterval commitLogSwapMapReserveFileNum compatibleWithOldNameSrv configStorePath
        consumerOffsetUpdateVersionStep controllerAddr controllerDLegerGroup controllerDLegerPeers
        controllerDLegerSelfId controllerRequestThreadPoolQueueCapacity controllerStorePath controllerThreadPoolNums
        correctLogicMinOffsetForceInterval correctLogicMinOffsetSleepInterval defaultMessageRequestMode
        defaultPopShareQueueNum delayOffsetUpdateVersionStep deleteFileBatchMax disableCallbackExecutor
        disableNettyWorkerGroup disappearTimeAfterStart diskSpaceCleanForciblyRatio diskSpaceWarningLevelRatio
        dispatchCqCacheNum dispatchCqThreads dispatchFromSenderThread enableAsyncReput enableAutoInSyncReplicas
        enableCleanExpiredOffset enableControllerMode enableElectUncleanMaster enableNetWorkFlowControl
        enablePopBufferMerge enablePopLog enableRemoteEscape enableSlaveActingMaster forwardTimeout
        haFlowControlEnable haMaxGapNotInSync haMaxTimeSlaveNotCatchup inBrokerContainer inSyncReplicas
        litePullMessageEnable litePullMessageThreadPoolNums litePullThreadPoolQueueCapacity
        loadBalancePollNameServerInterval loadBalanceProcessorThreadPoolNums loadBalanceThreadPoolQueueCapacity
        lockInStrictMode logicQueueForceSwapMapInterval logicQueueSwapMapInterval logicQueueSwapMapReserveFileNum
        logicalDiskSpaceCleanForciblyThreshold mappedFileSize mappedFileSizeTimerLog mappedFileSwapEnable
        mapperFileSizeBatchConsumeQueue maxAsyncPutMessageRequests maxBatchDeleteFilesNum maxChecksumRange
        maxHaTransferByteInSecond maxPopPollingSize maxRecoveryCommitlogFiles maxSlaveResendLength maxTopicLength
        minInSyncReplicas notifyBrokerRoleChanged popCkMaxBufferSize popCkOffsetMaxQueueSize popCkStayBufferTime
        popCkStayBufferTimeOut popPollingMapSize popPollingSize processReadEvent pullBatchMaxMessageCount
        putMessageTimeout realTimeNotifyConsumerChange recheckReputOffsetFromCq rejectPullConsumerEnable
        replicasPerDiskPartition reviveInterval reviveMaxSlow reviveQueueNum reviveScanTime
        scanNotActiveBrokerInterval searchBcqByCacheEnable sendHeartbeatTimeoutMillis serverLoadBalancerEnable
        skipPreOnline storePathEpochFile syncBrokerMemberGroupPeriod syncBrokerMetadataPeriod
        syncControllerMetadataPeriod syncFromLastFile syncMasterFlushOffsetWhenStartup timerCongestNumEachSlot
        timerEnableCheckMetrics timerFlushIntervalMs timerGetMessageThreadNum timerInterceptDelayLevel
        timerMaxDelaySec timerMetricSmallThreshold timerPrecisionMs timerProgressLogIntervalMs
        timerPutMessageThreadNum timerRollWindowSlot timerStopEnqueue timerWheelEnable totalReplicas
        travelCqFileNumWhenGetMessage waitTimeMillsInAckQueue waitTimeMillsInLitePullQueue wakeCommitWhenPutMessage
        wakeFlushWhenPutMessage
    """,
    "5.1.0": """
        autoMessageVersionOnTopicLen batchDispatchRequestThreadPoolNums broadcastOffsetExpireMaxSecond
        broadcastOffsetExpireSecond brokerElectionPriority channelExpiredTimeout commitLogRollingInterval
        commitLogRollingMinimumSize compactionCqMappedFileSize compactionMappedFileSize compactionScheduleInternal
        compactionThreadNum controllerHeartBeatTimeoutMills enableBroadcastOffsetStore
        enableBuildConsumeQueueConcurrently enableCompaction enableNotifyAfterPopOrderLockRelease
        enableSkipLongAwaitingAck estimateAccumulation fetchControllerAddrByDnsLookup fetchNameSrvAddrByDnsLookup
        maxCommitJitter maxConsumeQueueScan maxOffsetMapSize metricGrpcExporterIntervalInMills
        metricGrpcExporterTimeOutInMills metricsExporterType metricsGrpcExporterHeader metricsGrpcExporterTarget
        metricsInDelta metricsLabel metricsPromExporterHost metricsPromExporterPort ossAccessKey ossBucket ossEndpoint
        ossSecretKey readAheadBatchSizeFactorThreshold readAheadCacheExpireDuration readAheadCacheSizeThresholdRate
        readAheadMaxFactor readAheadMessageCountThreshold readAheadMessageSizeThreshold readAheadMinFactor
        recoverConcurrently recoverThreadPoolNums reviveAckWaitMs sampleCountThreshold socksProxyConfig
        subscriptionExpiredTimeout tieredBackendServiceProvider tieredMetadataServiceProvider tieredStorageLevel
        tieredStoreCommitLogMaxSize tieredStoreConsumeQueueMaxSize tieredStoreFileReservedTime tieredStoreFilepath
        tieredStoreGroupCommitCount tieredStoreGroupCommitSize tieredStoreIndexFileMaxHashSlotNum
        tieredStoreIndexFileMaxIndexNum tieredStoreIndexFileRollingIdleInterval tieredStoreMaxGroupCommitCount
        transactionOpBatchInterval transactionOpMsgMaxSize useServerSideResetOffset validateSystemTopicWhenUpdateTopic
    """,
    "5.1.1": """
        metricLoggingExporterIntervalInMills scanInactiveMasterInterval storePathBrokerIdentity useStaticSubscription
    """,
    "5.1.2": """
        accessMessageInMemoryHotRatio cgColdReadThreshold coldCtrStrategyEnable coldDataFlowControlEnable
        coldDataScanEnable dataReadAheadEnable enablePopBatchAck globalColdReadThreshold objectStoreAccessKey
        objectStoreBucket objectStoreEndpoint objectStoreSecretKey sampleSteps tieredStoreFilePath
        timerColdDataCheckIntervalMs usePIDColdCtrStrategy
    """,
    "5.1.3": """
        fetchNamesrvAddrInterval
    """,
    "5.1.4": """
        enableMixedMessageType enableRocksDBLog enableSingleTopicRegister enableSplitRegistration
        initPopOffsetByCheckMsgInMem memTableFlushInterval metricsOtelCardinalityLimit
        popResponseReturnActualRetryTopic realTimePersistRocksDBConfig splitRegistrationSize storeType
        topicQueueLockNum
    """,
    "5.2.0": """
        cleanRocksDBDirtyCQIntervalMin controllerType electMasterMaxRetryCount enablePopMessageThreshold
        enableReconnectForGoAway enableRetryTopicV2 enableShutdownGracefully enableTransparentRetry
        enabledAppendPropCRC forceVerifyPropCRC jRaftControllerRPCAddr jRaftElectionTimeoutMs jRaftGroupId
        jRaftInitConf jRaftScanWaitTimeoutMs jRaftServerId jRaftSnapshotIntervalSecs maxFilterMessageSize
        maxReconnectIntervalTimeSeconds memTableFlushIntervalMs popInflightMessageThreshold recordGetMessageResult
        retrieveMessageFromPopRetryTopicV1 shutdownWaitTimeSeconds statRocksDBCQIntervalSec timerSkipUnknownError
        transactionMetricFlushInterval
    """,
    "5.3.0": """
        aclCacheExpiredSecond aclCacheMaxNum aclCacheRefreshSecond authConfigPath authenticationEnabled
        authenticationMetadataProvider authenticationProvider authenticationStrategy authenticationWhitelist
        authorizationEnabled authorizationMetadataProvider authorizationProvider authorizationStrategy
        authorizationWhitelist clusterName configName initAuthenticationUser innerClientAuthenticationCredentials
        migrateAuthFromV1Enabled readAheadCacheEnable readUnCommitted scanAvailableNameSrv
        statefulAuthenticationCacheExpiredSecond statefulAuthenticationCacheMaxNum
        statefulAuthorizationCacheExpiredSecond statefulAuthorizationCacheMaxNum tieredStoreCrcCheckEnable
        tieredStoreGroupCommit tieredStoreGroupCommitTimeout tieredStoreMaxFallBehindSize tieredStoreMaxPendingLimit
        userCacheExpiredSecond userCacheMaxNum userCacheRefreshSecond waitTimeMillsInAdminBrokerQueue
    """,
    "5.3.1": """
        batchWriteKvCqSize popFromRetryProbability putConsumeQueueDataByFileChannel rocksdbCQDoubleWriteEnable
        serverNettyWorkerGroupEnable skipWhenCKRePutReachMaxTimes tieredStoreDeleteFileEnable
        tieredStoreDeleteFileInterval transferMetadataJsonToRocksdb transferOffsetJsonToRocksdb
        updateNameServerAddrPeriod
    """,
    "5.3.2": """
        allowRecallWhenBrokerNotWriteable appendAckAsync appendCkAsync bottomMostCompressionTypeForConsumeQueueStore
        clearRetryTopicWhenDeleteTopic configManagerVersion enableLmqStats enableNotifyBeforePopCalculateLag
        popConsumerFSServiceInit popConsumerKVServiceEnable popConsumerKVServiceInit popConsumerKVServiceLog
        popLongPollingForceNotifyInterval popReviveMaxAttemptTimes popReviveMaxReturnSizePerRead recallMessageEnable
        rocksdbCompressionType rocksdbFlushWalFrequency rocksdbWalFileRollingThreshold
        spinLockCollisionRetreatOptimalDegree timerEnableRetryUntilSuccess useABSLock
    """,
    "5.3.3": """
        enableCreateSysGroup enableFastChannelEventProcess enableRegisterProducer maxStatsIdleTimeInMinutes
        printChannelGroups printChannelGroupsMinNum
    """,
    "5.3.4": """
        combineAssignOffsetCQType combineCQEnableCheckSelf combineCQLoadingCQTypes
        combineCQMaxExtraSearchCommitLogFiles combineCQPreferCQType enableAcceleratedRecovery enableConnectionMetrics
        enableLagAndDlqMetrics enableLogConsumeQueueRepeatedlyBuildWhenRecover enableMessageStoreMetrics
        enablePopMetrics enableRemotingMetrics enableRequestMetrics enableRunningFlagsInFlush enableSplitMetadata
        enableStatsMetrics enableTransactionMetrics popFromRetryProbabilityForPriority popPollingMapExpireTimeSeconds
        popReviveConcurrency priorityOrderAsc sharedByteBufferNum splitMetadataSize timerWheelSnapshotFlush
        timerWheelSnapshotIntervalMs useSeparateRetryQueue useSingleRocksDBForAllConfigs writeWithoutMmap
    """,
    "5.4.0": """
        appendTopicForTimerDeleteKey commitLogRecoverMaxNum indexFileReadEnable indexFileWriteEnable
        indexRocksDBEnable maxRocksDBIndexQueryDays timerRecallToTimeWheelEnable timerRecallToTimelineEnable
        timerRocksDBEnable timerRocksDBPrecisionMs timerRocksDBRollIntervalHours timerRocksDBRollMaxTps
        timerRocksDBRollRangeHours timerRocksDBStopScan timerRocksDBTimeExpiredMaxTps transRocksDBEnable
        transWriteOriginTransHalfEnable
    """,
    "5.5.0": """
        checkCommitLogOffsetOnRecover combineCQUseRocksdbForLmq enableLiteEventMode enableLitePopLog enableLmqQuota
        iteratorWhenUseRocksdbConsumeQueue liteEventCheckInterval liteEventFullDispatchDelayTime
        liteEventFullDispatchDelayTimeForWildcardGroup liteLagCountMetricsEnable liteLagLatencyCollectEnable
        liteLagLatencyMetricsEnable liteLagLatencyTopK liteSubscriptionCheckInterval liteSubscriptionCheckTimeoutMills
        liteTtlCheckInterval maxClientEventCount maxLiteSubscriptionCount maxMessageFilterNumForNotification
        metricsExportBatchMaxDataPoints minLiteTTl persistConsumerOffsetIncrementally popReviveSkipIfGroupAbsent
        timerReputServiceCorePoolSize timerReputServiceMaxPoolSize timerReputServiceQueueCapacity
        transactionCheckRocksdbCoreThreads transactionCheckRocksdbMaxThreads transactionCheckRocksdbQueueCapacity
        useMessageFilterForNotification useSeparateStorePathForRocksdbCQ
    """,
    "5.5.1": """
        batchDeleteSubscriptionGroupMaxRate batchDeleteTopicMaxRate correctMinOffsetMadviseEnable
        liteEventCapacityCacheTtlMs maxCheckMessageReuseBufferSize metricsExportBatchMaxConcurrent
        metricsExportBatchSplitEnabled metricsExportOtelMemoryMode popOrderLockTimerTickMs
        popOrderLockTimerTicksPerWheel popRocksdbBlockCacheSize popRocksdbWriteBufferSize
        rocksdbCQSelectiveDoubleWriteEnable rocksdbMaxSizeAmplificationPercent
    """,
}
# By the last release that has the name.
_UNTIL = {
    "4.5.1": """
        mapedFileSizeCommitLog mapedFileSizeConsumeQueue
    """,
    "4.9.8": """
        commercialBigCount commercialEnable commercialTimerCount commercialTransCount haSlaveFallbehindMax
    """,
    "5.1.0": """
        filterServerNums maxDelayTime
    """,
    "5.1.1": """
        ossAccessKey ossBucket ossEndpoint ossSecretKey tieredStoreFilepath
    """,
    "5.1.4": """
        memTableFlushInterval
    """,
    "5.2.0": """
        readAheadBatchSizeFactorThreshold readAheadMaxFactor readAheadMinFactor
    """,
    "5.3.0": """
        maxCommitJitter tieredStoreIndexFileRollingIdleInterval tieredStoreMaxFallBehindSize
    """,
    "5.3.1": """
        batchWriteKvCqSize enableTransparentRetry transferMetadataJsonToRocksdb transferOffsetJsonToRocksdb
    """,
    "5.5.0": """
        enableLiteEventMode
    """,
}
RENAMED = {  # by the history of the sources, so that the name is sure, or too far away for a slip
    "mapedFileSizeCommitLog": "mappedFileSizeCommitLog",  # until 4.5.1
    "mapedFileSizeConsumeQueue": "mappedFileSizeConsumeQueue",
    "timerUseRocksDB": "timerRocksDBEnable",
}
# In many templates; no release has read any of them. A broker keeps these parts below storePathRootDir.
OF_TEMPLATES = ("abortFile", "storeCheckpoint", "storePathConsumeQueue", "storePathIndex")
_LONGEST = 80  # letters of a name that is compared with others
_FURTHEST = 3  # edits


@cache
def _spans() -> dict[str, tuple[str, str]]:
    last = {key: release for release, keys in _UNTIL.items() for key in keys.split()}
    return {key: (release, last.get(key, "")) for release, keys in _SINCE.items() for key in keys.split()}


def known_span(key: str) -> tuple[str, str] | None:
    """Return the first and the last release that read this name.

    The last is "" if the newest does; None if no release reads it.
    """
    return _spans().get(key)


def reads(key: str, version: Version) -> bool:
    """Say whether the release reads this name."""
    span = known_span(key)
    return span is not None and _numbers(span[0]) <= version and (not span[1] or version <= _numbers(span[1]))


def meant_by(key: str, version: Version) -> str:
    """Return the name that the release reads and that was probably meant. "" if none is near enough, or two are equally near."""
    renamed = RENAMED.get(key)
    if renamed is not None and reads(renamed, version):
        return renamed
    near = [(edits, name) for edits, name in _near(key) if reads(name, version)]
    nearest = [name for edits, name in near if edits == near[0][0]]
    return nearest[0] if len(nearest) == 1 else ""


@lru_cache(maxsize=1024)
def _near(key: str) -> tuple[tuple[int, str], ...]:
    """Return names of all releases that are few edits away, the nearest first."""
    plain = _plain(key)
    if not plain or len(key) > _LONGEST:
        return ()
    most = min(_FURTHEST, len(plain) // 5)
    alike = (name for name in _spans() if abs(len(name) - len(plain)) <= most)
    return tuple(sorted((edits, name) for name in alike if (edits := _edits(plain, name.lower(), most)) <= most))


@cache
def _numbers(release: str) -> Version:
    return tuple(int(part) for part in release.split("."))


def _plain(key: str) -> str:
    """Return the name without case and without characters that may not be seen."""
    return re.sub(r"[^a-z0-9]", "", key.lower())


def _edits(one: str, other: str, most: int) -> int:
    """Return the Levenshtein distance; any number above `most` if it is above that."""
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, own in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (letter != own))
        if min(row) > most:
            return most + 1
    return row[-1]
