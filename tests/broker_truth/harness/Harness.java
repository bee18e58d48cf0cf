import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.PrintWriter;
import java.io.StringReader;
import java.io.StringWriter;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.rocketmq.common.*;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.store.*;
import org.apache.rocketmq.store.config.*;
import org.apache.rocketmq.store.stats.*;

/**
 * One real message store, as real_broker.py drives it: all that needs a loop over messages, or that names differently from release to release.
 * Compiled in the broker's JVM by Janino, which Spark ships: no lambdas, no diamonds, no enhanced switch.
 */
public class Harness {
    public final DefaultMessageStore store;
    private final boolean delaysByHook;
    private final MessageStoreConfig config;
    private Object timers;
    private Object keyedTimers;
    private Object transactions;
    private volatile Throwable startFailure;
    private volatile boolean started;

    /** settings: lines key=value for MessageStoreConfig and BrokerConfig alike; each takes what it knows. otherTopics: name=queues,... */
    public Harness(String root, String settings, String batchTopics, String compactedTopics, String otherTopics) throws Exception {
        Properties properties = new Properties();
        properties.load(new StringReader(settings));
        this.config = new MessageStoreConfig();
        BrokerConfig broker = new BrokerConfig();
        MixAll.properties2Object(properties, config);
        MixAll.properties2Object(properties, broker);
        config.setStorePathRootDir(root);
        config.setStorePathCommitLog(root + File.separator + "commitlog");
        ConcurrentHashMap topics = new ConcurrentHashMap();
        addTopics(topics, batchTopics, "queue.type", "BatchCQ");
        addTopics(topics, compactedTopics, "cleanup.policy", "COMPACTION");
        String[] others = otherTopics.split(",");
        for (int i = 0; i < others.length && others[i].length() > 0; i++) {
            String[] named = others[i].split("=");
            int queues = Integer.parseInt(named[1]);
            topics.put(named[0], new TopicConfig(named[0], queues, queues, 6)); // 6: it is read and written
        }
        Object[] arguments = new Object[] {config, statistics(), null, broker, topics};
        Class type = DefaultMessageStore.class;
        if ("defaultRocksDB".equals(properties.getProperty("storeType"))) {
            try {
                type = Class.forName("org.apache.rocketmq.store.RocksDBMessageStore");
            } catch (ClassNotFoundException before) { // up to 5.1: ConsumeQueues are files whatever the setting says
                type = DefaultMessageStore.class;
            }
        }
        Constructor constructor = type.getConstructors()[0];
        Object[] taken = new Object[constructor.getParameterTypes().length];
        System.arraycopy(arguments, 0, taken, 0, taken.length);
        this.store = (DefaultMessageStore) constructor.newInstance(taken);
        if (taken.length < arguments.length && topics.size() > 0) { // 5.0.0 and 5.1.0 get them afterwards
            type.getMethod("setTopicConfigTable", new Class[] {java.util.concurrent.ConcurrentMap.class}).invoke(store, new Object[] {topics});
        }
        Object delays = null;
        try {
            delays = field(store, "scheduleMessageService");
        } catch (NoSuchFieldException fromFiveOn) {
            delays = null;
        }
        this.delaysByHook = delays == null;
        if ("true".equals(properties.getProperty("transRocksDBEnable"))) { // as BrokerController does, before the store is loaded
            String name = "org.apache.rocketmq.store.transaction.TransMessageRocksDBStore";
            Object[] given = new Object[] {store, arguments[1], new InetSocketAddress("127.0.0.1", 10911)};
            transactions = Class.forName(name).getConstructors()[0].newInstance(given);
            call(store, "setTransMessageRocksDBStore", new Object[] {transactions});
        }
        if (delays != null) { // it thinks that it runs, and so never delivers
            ((AtomicBoolean) field(delays, "started")).set(true);
        }
    }

    private static void addTopics(Map topics, String names, String attribute, String value) throws Exception {
        String[] each = names.split(",");
        for (int i = 0; i < each.length; i++) {
            if (each[i].length() > 0) {
                TopicConfig topic = new TopicConfig(each[i]);
                ((Map) TopicConfig.class.getMethod("getAttributes", new Class[0]).invoke(topic, new Object[0])).put(attribute, value);
                topics.put(each[i], topic);
            }
        }
    }

    private static BrokerStatsManager statistics() throws Exception {
        try {
            return (BrokerStatsManager) BrokerStatsManager.class.getConstructor(new Class[] {String.class, boolean.class})
                .newInstance(new Object[] {"truth", Boolean.FALSE});
        } catch (NoSuchMethodException old) {
            return (BrokerStatsManager) BrokerStatsManager.class.getConstructor(new Class[] {String.class}).newInstance(new Object[] {"truth"});
        }
    }

    /** The value of a field, whoever declares it and whatever its access. */
    public static Object field(Object object, String name) throws Exception {
        for (Class type = object.getClass(); type != null; type = type.getSuperclass()) {
            try {
                Field found = type.getDeclaredField(name);
                found.setAccessible(true);
                return found.get(object);
            } catch (NoSuchFieldException above) {
                continue;
            }
        }
        throw new NoSuchFieldException(name);
    }

    /** start() in a thread of its own: a 4.x start may never return. */
    public void start() {
        Thread thread = new Thread(new Runnable() {
            public void run() {
                try {
                    store.start();
                    started = true;
                } catch (Throwable failure) {
                    startFailure = failure;
                }
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    /** "starting", "started", or the stack trace of what start() threw. */
    public String startState() {
        if (startFailure == null) {
            return started ? "started" : "starting";
        }
        StringWriter text = new StringWriter();
        startFailure.printStackTrace(new PrintWriter(text));
        return text.toString();
    }

    /** Controller mode (5.x): as a broker is before its controller has answered. To be called before load(). */
    public void fence(boolean fenced) throws Exception {
        call(call(store, "getRunningFlags", new Object[0]), "makeFenced", new Object[] {Boolean.valueOf(fenced)});
    }

    /** Controller mode: the controller makes this broker, alone in its syncStateSet, master of this epoch (ReplicasManager.changeToMaster). */
    public boolean elect(int epoch) throws Exception {
        Object service = store.getHaService();
        java.util.Set alone = new java.util.HashSet();
        alone.add(Long.valueOf(1));
        call(service, "setLocalBrokerId", new Object[] {Long.valueOf(1)});
        // Both are looked up first: between the two the dispatching thread goes on, and a broker comes from one to the other at once.
        java.lang.reflect.Method confirms = method(service, "setSyncStateSet", 1);
        java.lang.reflect.Method changes = method(service, "changeToMaster", 1);
        confirms.invoke(service, new Object[] {alone});
        Object changed = changes.invoke(service, new Object[] {Integer.valueOf(epoch)});
        fence(false);
        return ((Boolean) changed).booleanValue();
    }

    private static Object call(Object object, String name, Object[] arguments) throws Exception {
        return method(object, name, arguments.length).invoke(object, arguments);
    }

    /** The one method of this name and number of arguments; not every release has it. */
    private static java.lang.reflect.Method method(Object object, String name, int arguments) throws Exception {
        java.lang.reflect.Method[] methods = object.getClass().getMethods();
        for (int i = 0; i < methods.length; i++) {
            if (methods[i].getName().equals(name) && methods[i].getParameterTypes().length == arguments) {
                methods[i].setAccessible(true);
                return methods[i];
            }
        }
        throw new NoSuchMethodException(name);
    }

    /** Load the timers (5.x), as the broker does once the store is loaded: whether it can. */
    public boolean loadTimers() throws Exception {
        String root = config.getStorePathRootDir() + File.separator + "config" + File.separator;
        String name = "org.apache.rocketmq.store.timer.Timer";
        Object[] file = new Object[] {root + "timercheck"};
        Object checkpoint = Class.forName(name + "Checkpoint").getConstructor(new Class[] {String.class}).newInstance(file);
        file[0] = root + "timermetrics";
        Object metrics = Class.forName(name + "Metrics").getConstructor(new Class[] {String.class}).newInstance(file);
        Object[] arguments = new Object[] {store, config, checkpoint, metrics, statistics()};
        timers = Class.forName(name + "MessageStore").getConstructors()[0].newInstance(arguments);
        call(store, "setTimerMessageStore", new Object[] {timers});
        if (inRocksDB()) {
            Object[] given = new Object[] {store, metrics, statistics()};
            keyedTimers = Class.forName("org.apache.rocketmq.store.timer.rocksdb.TimerMessageRocksDBStore").getConstructors()[0].newInstance(given);
            call(store, "setTimerMessageRocksDBStore", new Object[] {keyedTimers});
        }
        boolean loaded = ((Boolean) call(timers, "load", new Object[0])).booleanValue();
        return keyedTimers == null ? loaded : loaded && ((Boolean) call(keyedTimers, "load", new Object[0])).booleanValue();
    }

    /** timerRocksDBEnable, of the releases that know it. */
    private boolean inRocksDB() throws Exception {
        try {
            return ((Boolean) field(config, "timerRocksDBEnable")).booleanValue();
        } catch (NoSuchFieldException before) {
            return false;
        }
    }

    /** Take and deliver timers, as a master does. */
    public void startTimers() throws Exception {
        call(timers, "start", new Object[] {Boolean.TRUE});
        if (keyedTimers != null) {
            call(keyedTimers, "start", new Object[0]);
        }
    }

    public void shutdown() throws Exception {
        if (timers != null) {
            call(timers, "shutdown", new Object[0]);
        }
        if (keyedTimers != null) {
            call(keyedTimers, "shutdown", new Object[0]);
        }
        if (transactions != null) {
            call(transactions, "shutdown", new Object[0]);
        }
        store.shutdown();
    }

    /** shutdown() without waiting for it; for stores whose later bytes nobody looks at. */
    public void abandon() {
        Thread thread = new Thread(new Runnable() {
            public void run() {
                store.shutdown();
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    // ---- writing ---------------------------------------------------------------------------------------------------

    /**
     * Put messages as real_broker.py packs them (see _pack there). The answers: for each the status, and where it is not null the
     * AppendMessageResult's physical offset, bytes, queue offset, store time and number of messages.
     */
    public byte[] put(byte[] packed) throws Exception {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(packed));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        int count = in.readInt();
        for (int i = 0; i < count; i++) {
            PutMessageResult result = putOne(in);
            AppendMessageResult appended = result.getAppendMessageResult();
            out.writeUTF(String.valueOf(result.getPutMessageStatus()));
            out.writeBoolean(appended != null);
            if (appended != null) {
                out.writeLong(appended.getWroteOffset());
                out.writeInt(appended.getWroteBytes());
                out.writeLong(appended.getLogicsOffset());
                out.writeLong(appended.getStoreTimestamp());
                out.writeInt(appended.getMsgNum());
            }
        }
        out.flush();
        return bytes.toByteArray();
    }

    private PutMessageResult putOne(DataInputStream in) throws Exception {
        int kind = in.readByte();
        String topic = in.readUTF();
        int queueId = in.readInt();
        int sysFlag = in.readInt();
        int flag = in.readInt();
        long prepared = in.readLong();
        String host = in.readUTF();
        Map properties = readProperties(in);
        byte[] body = readBytes(in);
        if (kind != 0) { // several messages in one: each its properties and its body
            int messages = in.readInt();
            ByteArrayOutputStream encoded = new ByteArrayOutputStream();
            for (int i = 0; i < messages; i++) {
                Message message = new Message(topic, new byte[0]);
                MessageAccessor.setProperties(message, readProperties(in));
                message.setBody(readBytes(in));
                encoded.write(MessageDecoder.encodeMessage(message));
            }
            body = encoded.toByteArray();
        }
        MessageExt message = kind == 1 ? (MessageExt) new MessageExtBatch() : (MessageExt) new MessageExtBrokerInner();
        if (message instanceof MessageExtBrokerInner) {
            MessageExtBrokerInner inner = (MessageExtBrokerInner) message;
            inner.setPropertiesString(MessageDecoder.messageProperties2String(properties));
            inner.setTagsCode(MessageExtBrokerInner.tagsString2tagsCode(TopicFilterType.SINGLE_TAG, (String) properties.get("TAGS")));
        }
        message.setTopic(topic);
        message.setQueueId(queueId);
        message.setSysFlag(sysFlag);
        message.setFlag(flag);
        message.setBody(body);
        MessageAccessor.setProperties(message, properties);
        message.setPreparedTransactionOffset(prepared);
        message.setBornTimestamp(System.currentTimeMillis());
        InetSocketAddress address = new InetSocketAddress(InetAddress.getByName(host), 10911);
        message.setBornHost(address);
        message.setStoreHost(address);
        if (host.indexOf(':') >= 0) {
            message.setBornHostV6Flag();
            message.setStoreHostAddressV6Flag();
        }
        if (kind == 1) {
            return store.putMessages((MessageExtBatch) message);
        }
        return store.putMessage((MessageExtBrokerInner) message);
    }

    /** Whether this release's broker, not its store, rewrites delayed messages (from 5.0 on). */
    public boolean delaysByHook() {
        return delaysByHook;
    }

    private static Map readProperties(DataInputStream in) throws Exception {
        Map properties = new TreeMap();
        int count = in.readInt();
        for (int i = 0; i < count; i++) {
            String name = in.readUTF();
            properties.put(name, in.readUTF());
        }
        return properties;
    }

    private static byte[] readBytes(DataInputStream in) throws Exception {
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return bytes;
    }

    /** Compact one queue of a compacted topic now, as its schedule would. */
    public void compact(String topic, int queueId) throws Exception {
        Object log = ((Map) field(field(store, "compactionStore"), "compactionLogTable")).get(topic + "_" + queueId);
        java.lang.reflect.Method method = log.getClass().getDeclaredMethod("doCompaction", new Class[0]);
        method.setAccessible(true);
        method.invoke(log, new Object[0]);
    }

    // ---- reading ---------------------------------------------------------------------------------------------------

    /**
     * What getMessage serves of a queue from one offset up to another, this many messages at a time; the offset at which each is served
     * is certain where that is one. For each answer: the offset asked for, the status, the offset to ask for next, and the records.
     */
    public byte[] read(String topic, int queueId, long from, long until, int count) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        long offset = from;
        while (offset < until) {
            GetMessageResult result = store.getMessage("truth", topic, queueId, offset, count, null);
            long next = Math.max(result.getNextBeginOffset(), offset + 1);
            out.writeLong(offset);
            out.writeUTF(String.valueOf(result.getStatus()));
            out.writeLong(next);
            List buffers = result.getMessageBufferList();
            out.writeInt(buffers.size());
            for (int i = 0; i < buffers.size(); i++) {
                write(out, (ByteBuffer) buffers.get(i));
            }
            result.release();
            offset = next;
        }
        out.flush();
        return bytes.toByteArray();
    }

    private static void write(DataOutputStream out, ByteBuffer buffer) throws Exception {
        byte[] copy = new byte[buffer.remaining()];
        ((ByteBuffer) buffer.duplicate()).get(copy);
        out.writeInt(copy.length);
        out.write(copy);
    }

    /** queryMessage for each (topic, key): the physical offsets of the records that it answers with (-1: too short to be one); -1 of them where it answers null. */
    public byte[] query(byte[] packed, int most) throws Exception {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(packed));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        int count = in.readInt();
        for (int i = 0; i < count; i++) {
            String topic = in.readUTF();
            QueryMessageResult result = store.queryMessage(topic, in.readUTF(), most, 0L, Long.MAX_VALUE);
            if (result == null) {
                out.writeInt(-1);
                continue;
            }
            List buffers = result.getMessageBufferList();
            out.writeInt(buffers.size());
            for (int k = 0; k < buffers.size(); k++) {
                ByteBuffer record = (ByteBuffer) buffers.get(k);
                out.writeLong(record.remaining() < 36 ? -1 : record.getLong(record.position() + 28));
            }
            result.release();
        }
        out.flush();
        return bytes.toByteArray();
    }
}
