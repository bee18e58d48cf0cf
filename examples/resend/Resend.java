import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.nio.channels.Channels;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.Validators;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.exception.RemotingConnectException;
import org.apache.rocketmq.remoting.exception.RemotingException;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Sends the messages of files that `query --format resend` or `export --format resend` wrote to a running cluster, once each.
 *
 * It needs nothing but a RocketMQ release: its lib folder has the client. With Java 11 or later:
 *
 *     java -cp "$ROCKETMQ_HOME/lib/*" Resend.java --namesrv HOST:9876 [options] lost.jsonl [more.jsonl ...]
 *
 * With Java 8 first `javac -cp "$ROCKETMQ_HOME/lib/*" Resend.java`, then `java -cp "$ROCKETMQ_HOME/lib/*:." Resend ...`.
 *
 * Beside each file it keeps FILE.sent: the file's SHA-256, then a line for each step: before a message goes out "sending LINE",
 * after that "sent LINE BROKER:QUEUE OFFSET MESSAGE-ID OFFSET-MESSAGE-ID STATUS" or "refused LINE WHY"; "skipped LINE" by --unknown.
 * Started again it continues where it stopped. A "sending" without an answer means that nobody knows whether the broker has the
 * message: it stops there, until --unknown says what to do.
 *
 * Exit codes: 0 all was sent or left out, as --dry-run and the last line say; 2 usage, or a file of another kind; 3 it stopped.
 */
public class Resend {
    static final String USAGE = "usage: Resend --namesrv HOST:PORT[;HOST:PORT] [--dry-run] [--rate N] [--topic NAME] [--to-topic NAME]\n"
        + "              [--broker NAME] [--now] [--unknown skip|send] [--group NAME] [--keys FILE] FILE ...\n"
        + "  --dry-run        send nothing: count, and ask the name server for each topic\n"
        + "  --rate N         messages a second at most (100)\n"
        + "  --topic NAME     only messages that go to this topic\n"
        + "  --to-topic NAME  send all to this topic instead of their own\n"
        + "  --broker NAME    only to queues of this broker; without it to the first, by name, that has the queue\n"
        + "  --now            delayed and timer messages go out at once, too\n"
        + "  --unknown WHAT   of a message whose sending had no answer: skip it, or send it once more\n"
        + "  --group NAME     producer group (resend-lost-messages)\n"
        + "  --keys FILE      its lines accessKey and secretKey, as in conf/tools.yml, for a broker with ACL; without it the environment's\n"
        + "                   ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY";
    /** As in YAML a comment begins with a "#" after a space, outside of quotes. */
    private static final Pattern KEY = Pattern.compile(
        "\\s*(accessKey|secretKey)\\s*[:=]\\s*(?!(?<=\\s)#)(['\"]?)(.*?)\\2\\s*(?:\\s#.*)?");

    private final Map<String, String> options = new HashMap<>();
    private final Set<String> flags = new HashSet<>();
    private final List<Path> files = new ArrayList<>();
    private final Map<String, List<MessageQueue>> queues = new HashMap<>();
    private final Set<String> waiting = new HashSet<>();
    private DefaultMQProducer producer;
    private long sent;
    private long before;
    private long leftOut;
    private long twins;
    private long refused;
    private long next;

    /** Why it stopped, in a sentence. */
    static final class Stopped extends Exception {
        private static final long serialVersionUID = 1L;
        final int code;

        Stopped(int code, String sentence) {
            super(sentence);
            this.code = code;
        }
    }

    public static void main(String[] words) {
        int code = 0;
        Resend resend = new Resend();
        try {
            resend.read(words);
            resend.run();
        } catch (Stopped why) {
            System.err.println("resend: " + why.getMessage());
            code = why.code;
        } catch (Exception problem) {
            System.err.println("resend: " + shown(String.valueOf(problem)));
            code = 3;
        } finally {
            if (resend.producer != null) {
                resend.producer.shutdown();
            }
        }
        System.exit(code);
    }

    private void read(String[] words) throws Stopped {
        List<String> valued = Arrays.asList("--namesrv", "--rate", "--topic", "--to-topic", "--broker", "--unknown", "--group", "--keys");
        for (int i = 0; i < words.length; i++) {
            if (valued.contains(words[i]) && i + 1 < words.length) {
                options.put(words[i], words[++i]);
            } else if (words[i].equals("--dry-run") || words[i].equals("--now")) {
                flags.add(words[i]);
            } else if (words[i].startsWith("--")) {
                throw new Stopped(2, words[i] + ": no such option, or its value is missing\n" + USAGE);
            } else {
                files.add(Paths.get(words[i]));
            }
        }
        if (options.getOrDefault("--namesrv", "").trim().isEmpty()) {
            throw new Stopped(2, "--namesrv HOST:PORT is missing: without a name server nobody knows where to send\n" + USAGE);
        }
        if (files.isEmpty()) {
            throw new Stopped(2, USAGE);
        }
        if (!options.getOrDefault("--rate", "100").matches("[1-9][0-9]{0,6}")) {
            throw new Stopped(2, "--rate: a number from 1 on");
        }
        if (!Arrays.asList("", "skip", "send").contains(options.getOrDefault("--unknown", ""))) {
            throw new Stopped(2, "--unknown: skip or send");
        }
    }

    private void run() throws Exception {
        producer = new DefaultMQProducer(options.getOrDefault("--group", "resend-lost-messages"), signer());
        producer.setNamesrvAddr(options.get("--namesrv"));
        producer.setVipChannelEnabled(false);
        producer.setRetryTimesWhenSendFailed(0); // a retry after a timeout could store it twice
        producer.setMaxMessageSize(64 << 20); // the broker's own limit decides
        producer.setSendMsgTimeout(10_000);
        producer.start();
        check();
        if (!flags.contains("--dry-run")) {
            for (Path file : files) {
                send(file);
            }
        }
        String what = flags.contains("--dry-run") ? " would be sent" : " sent";
        System.out.println(sent + what + ", " + before + " were sent before, " + leftOut + " left out, " + twins
            + " the same as one that is sent, " + refused + " refused");
        if (refused > 0 && !flags.contains("--dry-run")) {
            throw new Stopped(3, refused + " refused; another run tries them again, and FILE.sent has the reasons");
        }
    }

    /** Signs every request; null where nobody names keys. No option takes them: others on the machine see a command line. */
    private RPCHook signer() throws Exception {
        Map<String, String> keys = new HashMap<>();
        if (options.containsKey("--keys")) {
            for (String line : Files.readAllLines(Paths.get(options.get("--keys")), StandardCharsets.UTF_8)) {
                Matcher key = KEY.matcher(line);
                if (key.matches()) {
                    keys.put(key.group(1), key.group(3));
                }
            }
        } else {
            keys.put("accessKey", System.getenv("ROCKETMQ_ACCESS_KEY"));
            keys.put("secretKey", System.getenv("ROCKETMQ_SECRET_KEY"));
            keys.values().removeIf(key -> key == null);
        }
        keys.values().removeIf(String::isEmpty);
        if (keys.isEmpty() && !options.containsKey("--keys")) {
            return null;
        }
        if (keys.isEmpty()) {
            throw new Stopped(2, options.get("--keys") + ": no line accessKey: ... and no line secretKey: ... with a key");
        }
        if (keys.size() < 2) {
            throw new Stopped(2, "an access key and a secret key belong together: " + keys.keySet() + " alone were named");
        }
        return new AclClientRPCHook(new SessionCredentials(keys.get("accessKey"), keys.get("secretKey")));
    }

    /** Reads all files before anything is sent: their form, why lines are left out, and whether each topic can be reached. */
    private void check() throws Exception {
        Map<String, Long> byTopic = new TreeMap<>();
        Map<String, Long> byReason = new TreeMap<>();
        for (Path file : files) {
            try (Journal journal = new Journal(file, false); BufferedReader lines = open(file)) {
                int number = 0;
                for (String text = lines.readLine(); text != null; text = lines.readLine()) {
                    Map<?, ?> line = parse(file, ++number, text);
                    if (!wanted(line)) {
                        continue;
                    }
                    if (line.get("why_not") != null) {
                        byReason.merge(shown(line.get("why_not").toString()), 1L, Long::sum);
                        leftOut++;
                    } else if (journal.settled.get(number)) {
                        before++;
                        remember(line);
                    } else if (twin(line)) {
                        twins++;
                    } else {
                        byTopic.merge(topic(line), 1L, Long::sum);
                        String why = fault(message(line, topic(line)));
                        if (why != null) {
                            byReason.merge("the client refuses it: " + why, 1L, Long::sum);
                            refused++;
                        } else {
                            sent++;
                            remember(line);
                        }
                    }
                }
            }
        }
        for (Map.Entry<String, Long> reason : byReason.entrySet()) {
            System.out.println("left out: " + reason.getValue() + ", " + reason.getKey());
        }
        for (Map.Entry<String, Long> topic : byTopic.entrySet()) {
            System.out.println("to send:  " + topic.getValue() + ", " + shown(topic.getKey()) + ", " + queuesOf(topic.getKey()).size() + " queues");
        }
        if (!flags.contains("--dry-run")) {
            sent = before = leftOut = twins = refused = 0;
            waiting.clear();
        }
    }

    private void send(Path file) throws Exception {
        long pause = 1_000_000_000L / Long.parseLong(options.getOrDefault("--rate", "100"));
        try (Journal journal = new Journal(file, true); BufferedReader lines = open(file)) {
            int number = 0;
            for (String text = lines.readLine(); text != null; text = lines.readLine()) {
                Map<?, ?> line = parse(file, ++number, text);
                if (!wanted(line)) {
                    continue;
                }
                if (line.get("why_not") != null) {
                    leftOut++;
                    continue;
                }
                if (journal.settled.get(number)) {
                    before++;
                    remember(line);
                    continue;
                }
                if (twin(line)) {
                    twins++;
                    continue;
                }
                if (journal.unknown.get(number)) {
                    String what = options.get("--unknown");
                    if (what == null) {
                        throw new Stopped(3, file + " line " + number + ": its sending had no answer, so it may be stored (" + shown(topic(line))
                            + ", unique key " + shown(String.valueOf(line.get("unique_key")))
                            + "): look it up (mqadmin queryMsgByUniqueKey), then say --unknown skip or send");
                    }
                    if (what.equals("skip")) {
                        journal.add("skipped " + number, false);
                        remember(line);
                        continue;
                    }
                }
                long wait = next - System.nanoTime();
                if (wait > 0) {
                    Thread.sleep(wait / 1_000_000, (int) (wait % 1_000_000));
                }
                next = System.nanoTime() + pause;
                if (one(file, number, line, journal)) {
                    remember(line);
                }
            }
        }
    }

    /** Sends it; whether the broker took it. */
    private boolean one(Path file, int number, Map<?, ?> line, Journal journal) throws Exception {
        MessageQueue queue = queue(line);
        Message message = message(line, queue.getTopic());
        String fault = fault(message);
        if (fault != null) {
            refuse(file, number, fault, journal);
            return false;
        }
        journal.add("sending " + number, true);
        try {
            SendResult result = producer.send(message, queue);
            journal.add("sent " + number + " " + queue.getBrokerName() + ":" + queue.getQueueId() + " " + result.getQueueOffset() + " "
                + result.getMsgId() + " " + result.getOffsetMsgId() + " " + result.getSendStatus(), false);
            sent++;
            return true;
        } catch (MQBrokerException problem) {
            refuse(file, number, problem.getErrorMessage(), journal);
            return false;
        } catch (RemotingConnectException problem) {
            journal.add("refused " + number + " no connection", false);
            throw new Stopped(3, file + " line " + number + ": no connection to " + shown(queue.getBrokerName()) + "; it was not sent");
        } catch (MQClientException | RemotingException problem) {
            throw new Stopped(3, file + " line " + number + ": no answer: " + shown(problem.getMessage()));
        }
    }

    /** Why the client would not let the message out; null: it does. */
    private String fault(Message message) {
        try {
            Validators.checkMessage(message, producer);
            return null;
        } catch (MQClientException problem) {
            return shown(problem.getErrorMessage());
        }
    }

    private void refuse(Path file, int number, String why, Journal journal) throws Exception {
        journal.add("refused " + number + " " + shown(why), false);
        refused++;
        System.err.println("resend: " + file + " line " + number + ": refused: " + shown(why));
    }

    private Message message(Map<?, ?> line, String topic) {
        Message message = new Message(topic, Base64.getDecoder().decode(text(line, "body_base64")));
        MessageAccessor.clearProperty(message, "WAIT"); // the constructor's; the line has the old one's, if it had one
        message.setFlag(((Number) line.get("flag")).intValue());
        for (Object property : (List<?>) line.get("properties")) {
            MessageAccessor.putProperty(message, ((List<?>) property).get(0).toString(), ((List<?>) property).get(1).toString());
        }
        put(message, "TAGS", line.get("tags"));
        put(message, "KEYS", line.get("keys"));
        put(message, "UNIQ_KEY", line.get("unique_key")); // the client keeps an existing one: the message's id stays the same
        Number due = (Number) line.get("deliver_time_ms");
        if (due != null && due.longValue() > System.currentTimeMillis() && !flags.contains("--now")) {
            Number level = (Number) line.get("delay_level");
            if (level == null) {
                MessageAccessor.putProperty(message, "TIMER_DELIVER_MS", Long.toString(due.longValue()));
            } else {
                message.setDelayTimeLevel(level.intValue());
            }
        }
        return message;
    }

    private static void put(Message message, String name, Object value) {
        if (value != null) {
            MessageAccessor.putProperty(message, name, value.toString());
        }
    }

    private MessageQueue queue(Map<?, ?> line) throws Exception {
        List<MessageQueue> all = queuesOf(topic(line));
        int wanted = ((Number) line.get("queue_id")).intValue();
        for (MessageQueue queue : all) {
            if (queue.getQueueId() == wanted) {
                return queue;
            }
        }
        return all.get(Math.floorMod(wanted, all.size())); // the topic has fewer queues now: one queue's messages stay together
    }

    private List<MessageQueue> queuesOf(String topic) throws Exception {
        List<MessageQueue> found = queues.get(topic);
        if (found == null) {
            found = new ArrayList<>();
            try {
                for (MessageQueue queue : producer.fetchPublishMessageQueues(topic)) {
                    if (!options.containsKey("--broker") || options.get("--broker").equals(queue.getBrokerName())) {
                        found.add(queue);
                    }
                }
            } catch (MQClientException problem) {
                if (noAnswer(problem)) {
                    throw new Stopped(3, "no name server answers at " + shown(options.get("--namesrv"))
                        + "; nothing was sent. Start one, or name another with --namesrv HOST:PORT");
                }
                throw new Stopped(3, "topic " + shown(topic) + ": no way to it (" + shown(problem.getMessage()) + "); nothing was sent. Create it first: mqadmin updateTopic");
            }
            if (found.isEmpty()) {
                throw new Stopped(3, "topic " + shown(topic) + ": no queue that takes messages" + (options.containsKey("--broker") ? " on this broker" : "") + "; nothing was sent");
            }
            found.sort(Comparator.comparing(MessageQueue::getBrokerName).thenComparing(MessageQueue::getQueueId));
            queues.put(topic, found);
        }
        return found;
    }

    /** Whether the name server did not answer at all: one that answers and does not know the topic says so. */
    private static boolean noAnswer(Throwable problem) {
        for (Throwable cause = problem.getCause(); cause != null; cause = cause.getCause()) {
            if (cause instanceof RemotingException || cause instanceof IOException) {
                return true;
            }
        }
        return false;
    }

    private boolean wanted(Map<?, ?> line) {
        return !options.containsKey("--topic") || options.get("--topic").equals(line.get("topic"));
    }

    private String topic(Map<?, ?> line) {
        return options.containsKey("--to-topic") ? options.get("--to-topic") : text(line, "topic");
    }

    /** A delayed or timer message and its delivered copy are one: the first of them in the file is sent. */
    private boolean twin(Map<?, ?> line) throws Exception {
        return !waiting.isEmpty() && line.get("unique_key") != null && waiting.contains(identity(line));
    }

    private void remember(Map<?, ?> line) throws Exception {
        if (line.get("deliver_time_ms") != null && line.get("unique_key") != null) {
            waiting.add(identity(line));
        }
    }

    private static String identity(Map<?, ?> line) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (String name : Arrays.asList("topic", "unique_key", "born_time_ms", "body_base64")) {
            digest.update((line.get(name) + "\n").getBytes(StandardCharsets.UTF_8));
        }
        return Base64.getEncoder().encodeToString(digest.digest());
    }

    private static String text(Map<?, ?> line, String name) {
        return line.get(name).toString();
    }

    private static BufferedReader open(Path file) throws IOException {
        return new BufferedReader(new InputStreamReader(Files.newInputStream(file), StandardCharsets.UTF_8), 1 << 16);
    }

    private static Map<?, ?> parse(Path file, int number, String text) throws Stopped {
        Map<?, ?> line = null;
        try {
            line = RemotingSerializable.fromJson(text, Map.class);
        } catch (RuntimeException problem) {
            line = null;
        }
        boolean whole = line != null && line.get("topic") instanceof String && line.get("queue_id") instanceof Number
            && line.get("flag") instanceof Number && arePairs(line.get("properties")) && line.containsKey("why_not")
            && (line.get("body_base64") instanceof String || line.get("why_not") != null);
        if (!whole) {
            throw new Stopped(2, file + " line " + number + ": not what --format resend writes; nothing of this line was sent");
        }
        return line;
    }

    /** A list of [name, value]. As members of a JSON object the parser would obey some names, such as "@type" and "$ref". */
    private static boolean arePairs(Object properties) {
        if (!(properties instanceof List)) {
            return false;
        }
        for (Object pair : (List<?>) properties) {
            if (!(pair instanceof List) || ((List<?>) pair).size() != 2 || !(((List<?>) pair).get(0) instanceof String)
                || !(((List<?>) pair).get(1) instanceof String)) {
                return false;
            }
        }
        return true;
    }

    /** Without what a terminal would obey. */
    private static String shown(String text) {
        return text == null ? "" : text.replaceAll("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]+", " ").trim();
    }

    /** What became of the lines of one file. */
    static final class Journal implements AutoCloseable {
        final BitSet settled = new BitSet(); // by line: sent or skipped
        final BitSet unknown = new BitSet(); // by line: going out, and no answer came
        private final RandomAccessFile file;

        Journal(Path of, boolean write) throws Exception {
            Path path = of.resolveSibling(of.getFileName() + ".sent");
            file = write ? new RandomAccessFile(path.toFile(), "rw") : null;
            boolean ready = false;
            try {
                if (file != null && file.getChannel().tryLock() == null) {
                    throw new Stopped(3, path + ": another run writes it");
                }
                read(of, path);
                ready = true;
            } finally {
                if (!ready) {
                    close();
                }
            }
        }

        /** Takes in what earlier runs wrote, once nobody else can write. */
        private void read(Path of, Path path) throws Exception {
            String own = "file " + sha256(of);
            long end = 0;
            if (file != null || Files.exists(path)) {
                InputStream from = file == null ? Files.newInputStream(path) : Channels.newInputStream(file.getChannel());
                InputStream data = new BufferedInputStream(from);
                try {
                    StringBuilder line = new StringBuilder();
                    long at = 0;
                    for (int one = data.read(); one >= 0; one = data.read()) {
                        at++;
                        if (one != '\n') {
                            line.append((char) one);
                            continue;
                        }
                        if (end > 0) {
                            take(path, line.toString().split(" ", 3));
                        } else if (!line.toString().equals(own)) {
                            throw new Stopped(2, path + ": belongs to another file than " + of + " is now; what was sent of that one is not known"
                                + " of this one. Give this one another name, and look up by unique key what was sent");
                        }
                        end = at; // a last line that was cut off does not count
                        line.setLength(0);
                    }
                } finally {
                    if (file == null) {
                        data.close();
                    }
                }
            }
            if (file != null) {
                file.setLength(end);
                file.seek(end);
                if (end == 0) {
                    add(own, true);
                }
            }
        }

        private static String sha256(Path of) throws Exception {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            byte[] piece = new byte[1 << 16];
            try (InputStream data = Files.newInputStream(of)) {
                for (int count = data.read(piece); count >= 0; count = data.read(piece)) {
                    digest.update(piece, 0, count);
                }
            }
            StringBuilder text = new StringBuilder();
            for (byte one : digest.digest()) {
                text.append(String.format("%02x", one));
            }
            return text.toString();
        }

        private void take(Path path, String[] words) throws Stopped {
            if (words.length < 2 || !words[1].matches("[0-9]{1,9}")) {
                throw new Stopped(2, path + ": not what this program writes");
            }
            int number = Integer.parseInt(words[1]);
            if (words[0].equals("sending")) {
                unknown.set(number);
                return;
            }
            if (!words[0].equals("refused")) { // such a one is tried again
                settled.set(number);
            }
            unknown.clear(number);
        }

        /** One line, whatever is in it: a producer chooses unique keys, and may have put the end of a line into one. */
        void add(String line, boolean flush) throws IOException {
            file.write((shown(line) + "\n").getBytes(StandardCharsets.UTF_8));
            if (flush) {
                file.getChannel().force(false);
            }
        }

        @Override
        public void close() throws IOException {
            if (file != null) {
                file.close();
            }
        }
    }
}
